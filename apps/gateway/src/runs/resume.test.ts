import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { bytesOf, errorOf, textOf } from '@inference-proxy/test/client';
import { afterOpening, opening } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GatewayUnderTest, NEVER_MS, PROJECT, token } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
let other: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ STREAM_COMMIT_MS: String(NEVER_MS) });
  other = await GatewayUnderTest.start({ STREAM_COMMIT_MS: String(NEVER_MS) }, gateway);
});
afterAll(async () => {
  await other.stop();
  await gateway.stop();
});

/** Starts a run that continues without a reader. */
async function promised(): Promise<PlayedRun> {
  const calling = gateway.call({ query: '?async=true', body: '{}' });
  const run = await gateway.worker.next();
  await calling;
  return run;
}

const path = (run: PlayedRun, query = ''): string => `/v4/${PROJECT}/runs/${run.taken.runId}/stream${query}`;

const resume = (
  run: PlayedRun,
  { query = '', headers = {}, at = gateway }: { query?: string; headers?: object; at?: GatewayUnderTest } = {},
): Promise<IncomingMessage> => at.open(path(run, query), { method: 'GET', headers: { ...headers } });

/** Reads without pause. */
function reading(answer: IncomingMessage) {
  let text = '';
  answer.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  const ended = once(answer, 'end');
  ended.catch(() => {});
  return {
    /** Resolves when as many characters have arrived. They must equal `expected`. */
    async says(expected: string): Promise<void> {
      while (text.length < expected.length) await once(answer, 'data');
      expect(text).toBe(expected);
    },
    async whole(): Promise<string> {
      await ended;
      return text;
    },
  };
}

const ONE_TWO = 'id: 1\ndata: one\n\nid: 2\ndata: two\n\n';
const TWO = 'id: 2\ndata: two\n\n';
const THREE = 'id: 3\ndata: three\n\n';

describe('a stream begins at', () => {
  test.each<[string, string, object, string]>([
    ['the start', '', {}, opening(0) + ONE_TWO + THREE],
    ['after 0', '?after=0', {}, opening(0) + ONE_TWO + THREE],
    ['after an item within a batch', '?after=1', {}, opening(1) + TWO + THREE],
    ['after the header’s number', '', { 'last-event-id': '2' }, opening(2) + THREE],
    [
      'after the header’s number, not the query’s',
      '?after=1&lastEventId=0',
      { 'last-event-id': '2' },
      opening(2) + THREE,
    ],
    ['after `lastEventId`', '?lastEventId=2', {}, opening(2) + THREE],
    ['after `after`, not `lastEventId`', '?lastEventId=1&after=2', {}, opening(2) + THREE],
  ])('%s, after the end', async (_, query, headers, text) => {
    const run = await promised();
    await run.items(['one', 'two']);
    await run.items(['three']);
    await run.stops();
    for (const at of [gateway, other]) {
      const answer = await resume(run, { query, headers, at });
      expect(answer.statusCode).toBe(200);
      expect(await textOf(answer)).toBe(text);
    }
  });

  test('the reader’s last item, and continues live, on any gateway', async () => {
    const run = await promised();
    await run.items(['one', 'two']);
    const here = reading(await resume(run, { query: '?after=1' }));
    const there = reading(await resume(run, { at: other }));
    await here.says(opening(1) + TWO);
    await there.says(opening(0) + ONE_TWO);
    await run.items(['three']);
    await here.says(opening(1) + TWO + THREE);
    await there.says(opening(0) + ONE_TWO + THREE);
    await run.stops();
    expect([await here.whole(), await there.whole()]).toEqual([opening(1) + TWO + THREE, opening(0) + ONE_TWO + THREE]);
  });

  test('a number beyond the newest item, and waits for later items', async () => {
    const run = await promised();
    await run.items(['one']);
    const answering = resume(run, { query: '?after=2' });
    await run.items(['two', 'three']);
    const reader = reading(await answering);
    await reader.says(opening(2) + THREE);
    await run.stops();
    expect(await reader.whole()).toBe(opening(2) + THREE);
  });

  test('the start of a queued run', async () => {
    const { text } = await gateway.call({ query: '?async=true', body: '{}' });
    const runId = JSON.parse(text).run_id as string;
    // The head arrives although no worker has taken the run.
    const hasty = await GatewayUnderTest.start({ STREAM_COMMIT_MS: '150' }, gateway);
    const answer = await hasty.open(`/v4/${PROJECT}/runs/${runId}/stream`, { method: 'GET' });
    expect(answer.statusCode).toBe(200);
    const run = await gateway.worker.next();
    const reader = reading(answer);
    // A reader that is cut now can resume, although the run has no item.
    await reader.says(opening(0));
    await run.items(['one']);
    await reader.says(`${opening(0)}id: 1\ndata: one\n\n`);
    await run.stops();
    await hasty.stop();
  });
});

test('in the rich stream a failure repeats the last item’s number: a live reader gets it, and a returning reader gets 204', async () => {
  const run = await promised();
  await run.items(['one']);
  const live = reading(await resume(run, { query: '?after=1&events=full' }));
  await run.fails({ code: 'function_error', message: 'no' });
  expect(afterOpening(1, await live.whole())).toMatch(/^id: 1\nevent: error\ndata: .*"function_error".*\n\n$/);
  expect((await resume(run, { query: '?after=1&events=full' })).statusCode).toBe(204);
});

describe('an ended run without an event after the id returns 204:', () => {
  const nothing = async (run: PlayedRun, query: string): Promise<void> => {
    const answer = await resume(run, { query });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers['x-request-id']).toBeDefined();
    expect(await textOf(answer)).toBe('');
  };

  test('a stream', async () => {
    const run = await promised();
    await run.items(['one', 'two']);
    await run.stops();
    await nothing(run, '?after=2');
    await nothing(run, '?after=3');
    await nothing(run, '?after=2&events=full');
  });

  test('a stream without items', async () => {
    const run = await promised();
    await run.stops();
    await nothing(run, '');
  });

  test('a stream that ends without a further event while its reader waits for the head', async () => {
    const run = await promised();
    await run.items(['one']);
    const answering = resume(run, { query: '?after=1' });
    await gateway.request(path(run), { method: 'HEAD' });
    await run.stops();
    expect((await answering).statusCode).toBe(204);
  });

  test('a plain value, which is one event', async () => {
    const run = await promised();
    await run.returns('"two\\nlines"');
    expect(await textOf(await resume(run))).toBe(`${opening(0)}id: 1\ndata: two\ndata: lines\n\n`);
    await nothing(run, '?after=1');
  });

  test('a failure, whose event has the number after the last item', async () => {
    const run = await promised();
    await run.items(['one', 'two']);
    await run.fails({ code: 'function_error', message: 'no', type: 'ValueError' });
    const error = { code: 'function_error', message: 'no', retryable: false, type: 'ValueError' };
    const event = `id: 3\nevent: error\ndata: ${JSON.stringify({ run_id: run.taken.runId, error })}\n\n`;
    expect(await textOf(await resume(run))).toBe(opening(0) + ONE_TWO + event);
    expect(await textOf(await resume(run, { query: '?after=2' }))).toBe(opening(2) + event);
    await nothing(run, '?after=3');
  });

  test('a failure before the first item', async () => {
    const run = await promised();
    await run.fails({ code: 'timed_out', message: 'too slow' }, 'timed_out');
    const answer = await resume(run);
    expect(answer.statusCode).toBe(200);
    expect(afterOpening(0, await textOf(answer))).toMatch(/^id: 1\nevent: error\ndata: .*"timed_out".*\n\n$/);
    await nothing(run, '?after=1');
  });
});

describe('a rejected request:', () => {
  test.each([
    ['an unknown run', `/v4/${PROJECT}/runs/01890000-0000-7000-8000-000000000000/stream`],
    ['a malformed run id', `/v4/${PROJECT}/runs/x/stream`],
  ])('%s', async (_, unknown) => {
    const answer = await gateway.get(unknown);
    expect([answer.status, errorOf(answer).code]).toEqual([404, 'not_found']);
    expect((await gateway.request(unknown, { method: 'HEAD' })).status).toBe(404);
  });

  test('a malformed event id', async () => {
    const run = await promised();
    await run.stops();
    for (const query of ['?after=x', '?after=-1', '?after=1&after=2', '?events=all', '?ids=yes']) {
      const answer = await gateway.get(path(run, query));
      expect([answer.status, errorOf(answer).code]).toEqual([400, 'invalid_request']);
    }
    expect((await gateway.get(path(run), { 'last-event-id': 'x' })).status).toBe(400);
  });

  test('a token without the scope for runs, a token of another project, or no token', async () => {
    const run = await promised();
    await run.stops();
    const status = async (authorization: string) => (await gateway.get(path(run), { authorization })).status;
    expect(await status('')).toBe(401);
    expect(await status(`Bearer ${token({ scope: 'call' })}`)).toBe(403);
    expect(await status(`Bearer ${token({ project_id: 'other' })}`)).toBe(403);
    expect(await status(`Bearer ${token({ scope: 'runs:read' })}`)).toBe(204);
  });

  test('another method', async () => {
    const run = await promised();
    await run.stops();
    const answer = await gateway.request(path(run), { method: 'POST', body: '{}' });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});

test('HEAD returns the head of the stream and ends', async () => {
  const run = await promised();
  await run.items(['one']);
  const answer = await gateway.request(path(run), { method: 'HEAD' });
  expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
    '',
  ]);
  await run.stops();
});

test('the request has its own id, because the path has the run’s id', async () => {
  const run = await promised();
  await run.items(['one']);
  const answer = await resume(run);
  expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  expect(answer.headers['x-request-id']).not.toBe(run.taken.runId);
  answer.destroy();
  await run.stops();
});

test('the stream is compressed for a reader that accepts gzip', async () => {
  const run = await promised();
  await run.items(['one', 'x'.repeat(20_000)]);
  await run.stops();
  const answer = await resume(run, { headers: { 'accept-encoding': 'gzip' } });
  expect(answer.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(await bytesOf(answer)).toString()).toBe(
    `${opening(0)}id: 1\ndata: one\n\nid: 2\ndata: ${'x'.repeat(20_000)}\n\n`,
  );
});

test('only the last of an item’s ready-made events is numbered, and ids in the text are dropped', async () => {
  const run = await promised();
  await run.items(['id: x\ndata: a\n\nid: y\nevent: end\ndata: b\n\n'], 'm');
  await run.stops();
  expect(await textOf(await resume(run))).toBe(`${opening(0)}data: a\n\nid: 1\nevent: end\ndata: b\n\n`);
});

describe('a plain run', () => {
  test('with ids=true is numbered for its caller, and can be resumed elsewhere while it runs', async () => {
    const calling = gateway.open(`/v4/${PROJECT}/chat/run?ids=true&onDisconnect=30`, {
      body: '{}',
      headers: { accept: 'text/event-stream' },
    });
    const run = await gateway.worker.next();
    await run.items(['one', 'two']);
    const call = await calling;
    await reading(call).says(opening(0) + ONE_TWO);
    call.destroy();
    const again = reading(await resume(run, { headers: { 'last-event-id': '1' }, at: other }));
    await again.says(opening(1) + TWO);
    await run.fails({ code: 'replica_crashed', message: 'gone' });
    expect(afterOpening(1, await again.whole())).toMatch(
      /^id: 2\ndata: two\n\nid: 3\nevent: error\ndata: .*"replica_crashed".*\n\n$/,
    );
  });

  test('continues for a second reader when its caller disconnects, and is cancelled with its last reader', async () => {
    const calling = gateway.stream();
    const run = await gateway.worker.next();
    await run.items(['one']);
    const call = await calling;
    const second = await resume(run, { at: other });
    const reader = reading(second);
    await reader.says(`${opening(0)}id: 1\ndata: one\n\n`);
    call.destroy();
    await run.items(['two']);
    await reader.says(opening(0) + ONE_TWO);
    const cancelled = gateway.worker.cancelled();
    second.destroy();
    expect(await cancelled).toBe(run.taken.runId);
    await run.fails({ code: 'cancelled', message: 'cancelled' }, 'cancelled');
  });
});

test('a stopping gateway sends its readers an error event after which they can resume', async () => {
  const third = await GatewayUnderTest.start({ SHUTDOWN_DELAY_S: '0', SHUTDOWN_GRACE_S: '0.1' }, gateway);
  const run = await promised();
  await run.items(['one', 'two']);
  const reader = reading(await resume(run, { at: third }));
  await reader.says(opening(0) + ONE_TWO);
  await third.stop();
  expect((await reader.whole()).slice((opening(0) + ONE_TWO).length)).toMatch(
    /^id: 2\nevent: error\ndata: .*"unavailable".*\n\n$/,
  );
  await run.items(['three']);
  await run.stops();
  expect(await textOf(await resume(run, { query: '?after=2' }))).toBe(opening(2) + THREE);
});
