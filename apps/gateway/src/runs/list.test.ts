import { ServiceError } from '@inference-proxy/contracts';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';
import { app, type PlayedRun } from '../../test/played-worker.ts';
import { Query } from '../http/request-head.ts';
import { runQueryOf } from './list.ts';

function refusal(query: string): string {
  try {
    runQueryOf(new Query(query));
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'invalid_request') return error.message;
    throw error;
  }
  return 'accepted';
}

describe('the query of a list', () => {
  test.each([
    ['', { limit: 50 }],
    ['limit=1', { limit: 1 }],
    [
      'limit=100&app=chat&function=run&status=timed_out&cursor=abc',
      {
        limit: 100,
        app: 'chat',
        fn: 'run',
        status: 'timed_out',
        cursor: 'abc',
      },
    ],
    ['webhook=failed&since=0&until=1970-01-01T00:00:01Z', { limit: 50, webhook: 'failed', since: 0, until: 1000 }],
    ['something=else', { limit: 50 }],
    ['app=caf%C3%A9', { limit: 50, app: 'café' }],
  ])('%j', (query, asked) => {
    expect(runQueryOf(new Query(query))).toEqual(asked);
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=', 'limit'],
    ['limit=10&limit=20', 'limit'],
    ['status=done', 'status'],
    ['status=', 'status'],
    ['status=queued&status=running', 'status'],
    ['webhook=yes', 'webhook'],
    ['since=yesterday', 'since'],
    ['until=1&until=2', 'until'],
    ['app=', 'app'],
    ['function=', 'function'],
    ['cursor=', 'cursor'],
    [`app=${'x'.repeat(513)}`, 'app'],
  ])('%j is rejected, and the message names the parameter', (query, name) => {
    expect(refusal(query)).toContain(`\`${name}\``);
  });
});

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  await gateway.worker.store.announce(PROJECT, app({ app: 'other' }));
});
afterAll(() => gateway.stop());

interface Page {
  readonly runs: readonly { run_id: string; app: string; status: string; [field: string]: unknown }[];
  readonly cursor?: string;
}

async function page(query = ''): Promise<Page> {
  const answer = await gateway.get(`/v4/${PROJECT}/runs${query}`);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Page;
}

/** Sends a call that does not wait. */
async function called(): Promise<string> {
  const answer = await gateway.call({ query: '?async=true' });
  return String(answer.headers['x-request-id']);
}

const ids = ({ runs }: Page): string[] => runs.map(({ run_id: id }) => id);

test('runs are listed newest first, each as in its look-up but without the result', async () => {
  const older = await called();
  const newer = await called();
  const run = await gateway.worker.next();
  expect(run.taken.runId).toBe(older);
  await run.returns('{"large":1}');
  const { runs } = await page();
  expect(runs.slice(0, 2).map(({ run_id: id }) => id)).toEqual([newer, older]);
  for (const listed of runs.slice(0, 2)) {
    const { result, ...looked } = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs/${listed.run_id}`)).text);
    expect(listed).toEqual(looked);
    expect(result).toEqual(listed.run_id === older ? { large: 1 } : undefined);
  }
  await (await gateway.worker.next()).returns('1');
});

test('a list is filtered by state, app and function', async () => {
  const failing = await called();
  await (await gateway.worker.next()).fails({ code: 'function_error', message: 'no', type: 'ValueError' });
  const waiting = await called();
  const other = await gateway.request(`/v4/${PROJECT}/other/run?async=true`, { body: '{}' });
  const otherId = String(other.headers['x-request-id']);
  expect(ids(await page('?status=failed'))).toEqual([failing]);
  expect((await page('?status=failed')).runs[0]).toMatchObject({
    error: { code: 'function_error', type: 'ValueError' },
  });
  expect(ids(await page('?app=other'))).toEqual([otherId]);
  expect(ids(await page('?app=chat&status=queued'))).toEqual([waiting]);
  expect(ids(await page('?status=queued'))).toEqual([otherId, waiting]);
  for (const query of ['?app=nothing', '?function=nothing', '?app=other&status=failed', '?status=expired'])
    expect(ids(await page(query))).toEqual([]);
  expect(ids(await page('?function=run&app=other'))).toEqual([otherId]);
  await (await gateway.worker.next()).returns('1');
});

test('pages list every run once and in order while runs start and end', async () => {
  const mine: string[] = [];
  for (let n = 0; n < 7; n++) mine.unshift(await called());
  const seen: string[] = [];
  let running: PlayedRun | undefined;
  let { runs, cursor } = await page('?app=chat&limit=2');
  for (;;) {
    seen.push(...ids({ runs }));
    if (cursor === undefined) break;
    // Between two pages one run is accepted, one run starts and one run ends.
    await called();
    await running?.returns('1');
    running = await gateway.worker.next();
    ({ runs, cursor } = await page(`?app=chat&limit=2&cursor=${cursor}`));
  }
  expect(seen.slice(0, 7)).toEqual(mine);
  expect(new Set(seen).size).toBe(seen.length);
});

test('a malformed cursor returns 400, a project without runs returns an empty list, and another project returns 403', async () => {
  for (const cursor of ['x', '!', 'AAAA'])
    expect((await gateway.get(`/v4/${PROJECT}/runs?cursor=${cursor}`)).status).toBe(400);
  const everybody = { authorization: `Bearer ${token({ project_id: '*' })}` };
  expect(JSON.parse((await gateway.get('/v4/nobody/runs', everybody)).text)).toEqual({ runs: [] });
  expect((await gateway.get('/v4/nobody/runs')).status).toBe(403);
  const calling = { authorization: `Bearer ${token({ scope: 'call' })}` };
  expect((await gateway.get(`/v4/${PROJECT}/runs`, calling)).status).toBe(403);
  const answer = await gateway.request(`/v4/${PROJECT}/runs`, { method: 'DELETE' });
  expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
});
