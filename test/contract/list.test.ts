// Contract 5: `GET /runs` and `GET /runs/{run_id}`, while the project's runs start and end.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller, type LookedUp } from '../client/caller.ts';
import type { Answer } from '../client/http.ts';
import { fileSays, until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await joinSharedStack('list', ['streams', 'limited']);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await sink.close();
});

const mark = (name: string): string => join(stack.marksDir, name);
const runOf = (answer: Answer): string => String(answer.headers['x-request-id']);

interface Page {
  readonly runs: readonly LookedUp[];
  readonly cursor?: string;
}

async function page(query = '', from = caller): Promise<Page> {
  const answer = await from.request(`/v4/${from.project}/runs${query}`, { method: 'GET' });
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Page;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test('a look-up returns a run’s state, times, items, result and webhook', async () => {
  const [gate, started] = [mark('list-gate'), mark('list-started')];
  const hook = `?async=true&webhookEndpoint=${encodeURIComponent(sink.url)}`;
  const runId = runOf(await caller.call('streams/waits', { gate, started }, { query: hook }));
  await fileSays(started);
  expect(await caller.lookUp(runId)).toEqual({
    run_id: runId,
    app: 'streams',
    function: 'waits',
    version: expect.stringMatching(/^[0-9a-f]{16}$/),
    status: 'running',
    accepted_at: expect.stringMatching(TIME),
    queued_at: expect.stringMatching(TIME),
    started_at: expect.stringMatching(TIME),
    items: 0,
    webhook: { state: 'waiting', attempts: 0 },
  });
  await writeFile(gate, '');
  await caller.ended(runId);
  const record = await until(async () => {
    const found = await caller.lookUp(runId);
    return found.webhook?.state === 'delivered' && found;
  });
  expect(record).toMatchObject({ status: 'succeeded', result: 'waited', webhook: { state: 'delivered', attempts: 1 } });
  const times = ['accepted_at', 'queued_at', 'started_at', 'ended_at'].map((name) => String(record[name]));
  expect(times).toEqual([...times].sort());
  // The caller, the receiver and the look-up get the same outcome.
  const [delivered] = sink.requests.map(({ body }) => JSON.parse(`${body}`));
  expect(delivered).toMatchObject({ run_id: runId, result: 'waited', timestamp: record.timestamp });
  expect(record.run_time_ms).toBe(delivered.run_time_ms);
});

test('the look-up of a generator’s run returns the count, the first item’s time and the items', async () => {
  const { events, runId } = await caller.stream('streams/items', { items: ['a', { b: 1 }] });
  await events.rest();
  const record = await caller.ended(runId);
  expect(record).toMatchObject({ items: 2, result: ['a', { b: 1 }], first_item_at: expect.stringMatching(TIME) });
  expect(record).not.toHaveProperty('webhook');
});

test('the look-up of a failed run returns the error', async () => {
  const runId = runOf(await caller.call('streams/raises', { text: 'no' }));
  const record = await caller.lookUp(runId);
  expect(record).toMatchObject({
    status: 'failed',
    error: { code: 'function_error', message: 'no', retryable: false, type: 'LookupError' },
  });
  expect(record).not.toHaveProperty('result');
});

test('a list has the look-ups without results, newest first, filtered by the query', async () => {
  const failed = runOf(await caller.call('streams/raises'));
  const limited = runOf(await caller.call('limited/large', { n: 1 }));
  const value = runOf(await caller.call('streams/value', { value: 1 }));
  const { runs } = await page('?limit=3');
  expect(runs.map(({ run_id: id }) => id)).toEqual([value, limited, failed]);
  for (const listed of runs) {
    const { result: _, ...looked } = await caller.lookUp(listed.run_id);
    expect(listed).toEqual(looked);
  }
  const first = async (query: string): Promise<string | undefined> => (await page(query)).runs[0]?.run_id;
  expect(await first('?app=limited')).toBe(limited);
  expect(await first('?status=failed')).toBe(failed);
  expect(await first('?app=streams&function=value')).toBe(value);
  expect((await page('?app=limited&status=failed')).runs).toEqual([]);
});

test('pages stay stable while runs are added: each run from before is on exactly one page', async () => {
  const there: string[] = [];
  for (let n = 0; n < 30; n++) there.unshift(runOf(await caller.call('streams/value', { value: n })));
  let calling = true;
  const traffic = (async () => {
    while (calling) await Promise.all([1, 2, 3].map((value) => caller.call('streams/value', { value })));
  })();
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const next: Page = await page(`?limit=7${cursor === undefined ? '' : `&cursor=${cursor}`}`);
    expect(next.runs.length).toBeLessThanOrEqual(7);
    seen.push(...next.runs.map(({ run_id: id }) => id));
    cursor = next.cursor;
  } while (cursor !== undefined);
  calling = false;
  await traffic;
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.filter((id) => there.includes(id))).toEqual(there);
});

test('a project sees its own runs only', async () => {
  const joined = await joinSharedStack('list-other', ['../other/hello']);
  const other = joined.caller;
  const runId = runOf(await other.call('hello/greet', { name: 'Ada' }));
  expect((await page('', other)).runs.map(({ run_id: id }) => id)).toEqual([runId]);
  expect((await page('?limit=100')).runs.some(({ run_id: id }) => id === runId)).toBe(false);
  await joined.leave();
  expect((await caller.request(`${caller.path}/runs/${runId}`, { method: 'GET' })).status).toBe(404);
});

test('a wrong parameter is 400, and the message names the parameter', async () => {
  for (const [query, name] of [
    ['?limit=1000', 'limit'],
    ['?status=done', 'status'],
    ['?cursor=x', 'cursor'],
  ] as const) {
    const answer = await caller.request(`${caller.path}/runs${query}`, { method: 'GET' });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(name);
  }
});
