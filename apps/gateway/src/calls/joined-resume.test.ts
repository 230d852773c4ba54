// Contract 3, "Resuming": a call joins its run by `Idempotency-Key` and names the last event that its caller has.
import type { IncomingMessage } from 'node:http';
import { errorOf, textOf } from '@inference-proxy/test/client';
import { afterOpening, opening } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GatewayUnderTest, NEVER_MS, PROJECT } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ STREAM_COMMIT_MS: String(NEVER_MS) });
});
afterAll(() => gateway.stop());

interface Call {
  readonly key: string;
  readonly query?: string;
  readonly headers?: Record<string, string>;
}

const call = ({ key, query = '?ids=true', headers = {} }: Call): Promise<IncomingMessage> =>
  gateway.open(`/v4/${PROJECT}/chat/run${query}`, {
    body: '{}',
    headers: { accept: 'text/event-stream', 'idempotency-key': key, ...headers },
  });

let keys = 0;

/** Starts a run under a new key. Its first caller has already received the 202 answer. */
async function run(): Promise<{ readonly key: string; readonly run: PlayedRun }> {
  const key = `key ${++keys}`;
  const calling = gateway.call({ query: '?async=true', body: '{}', headers: { 'idempotency-key': key } });
  const played = await gateway.worker.next();
  await calling;
  return { key, run: played };
}

const TWO = 'id: 2\ndata: two\n\n';
const THREE = 'id: 3\ndata: three\n\n';

describe('the joined stream begins after the event that the caller has', () => {
  test.each<[string, string, Record<string, string>]>([
    ['the header', '?ids=true', { 'last-event-id': '1' }],
    ['`after`', '?ids=true&after=1', {}],
    ['`lastEventId`', '?ids=true&lastEventId=1', {}],
    ['the header before both', '?ids=true&after=2&lastEventId=2', { 'last-event-id': '1' }],
    ['`after` before `lastEventId`', '?ids=true&lastEventId=2&after=1', {}],
  ])('named by %s', async (_, query, headers) => {
    const { key, run: played } = await run();
    await played.items(['one', 'two']);
    const live = await call({ key, query, headers });
    expect(live.statusCode).toBe(200);
    expect(live.headers).toMatchObject({ 'idempotency-replayed': 'true', 'x-request-id': played.taken.runId });
    await played.items(['three']);
    await played.stops();
    const text = `${opening(1)}${TWO}${THREE}`;
    expect(await textOf(live)).toBe(text);
    expect(await textOf(await call({ key, query, headers }))).toBe(text);
  });

  test('also a plain stream, without event numbers', async () => {
    const { key, run: played } = await run();
    await played.items(['one', 'two']);
    await played.stops();
    expect(await textOf(await call({ key, query: '', headers: { 'last-event-id': '1' } }))).toBe('data: two\n\n');
  });

  test('also a rich stream, without the earlier events', async () => {
    const { key, run: played } = await run();
    await played.items(['one', 'two']);
    await played.stops();
    const text = await textOf(await call({ key, query: '?events=full&after=1' }));
    expect(afterOpening(1, text)).toMatch(/^id: 2\nevent: item\ndata: two\n\nid: 2\nevent: done\ndata: .*\n\n$/);
  });

  test('number 0 is the start', async () => {
    const { key, run: played } = await run();
    await played.items(['one']);
    await played.stops();
    const text = await textOf(await call({ key, headers: { 'last-event-id': '0' } }));
    expect(text).toBe(`${opening(0)}id: 1\ndata: one\n\n`);
  });

  test('a failure after that event is sent as an event, and a failure that the caller has is not sent again', async () => {
    const { key, run: played } = await run();
    await played.items(['one']);
    await played.fails({ code: 'function_error', message: 'no' });
    const answer = await call({ key, headers: { 'last-event-id': '1' } });
    expect(answer.statusCode).toBe(200);
    expect(afterOpening(1, await textOf(answer))).toMatch(/^id: 2\nevent: error\ndata: .*"function_error".*\n\n$/);
    expect((await call({ key, headers: { 'last-event-id': '2' } })).statusCode).toBe(204);
  });
});

test.each(['?ids=true', '?events=full', ''])('%j: an ended run without a further event returns 204', async (query) => {
  const { key, run: played } = await run();
  await played.items(['one']);
  await played.stops();
  const answer = await call({ key, query, headers: { 'last-event-id': '1' } });
  expect(answer.statusCode).toBe(204);
  expect(answer.headers).toMatchObject({ 'idempotency-replayed': 'true', 'x-request-id': played.taken.runId });
  expect(await textOf(answer)).toBe('');
});

test('a run that ends without a further event while its caller waits for the head returns 204', async () => {
  const { key, run: played } = await run();
  await played.items(['one']);
  const calling = call({ key, headers: { 'last-event-id': '1' } });
  await gateway.request(`/v4/${PROJECT}/runs/${played.taken.runId}`, { method: 'HEAD' });
  await played.stops();
  expect((await calling).statusCode).toBe(204);
});

test('a call that starts a new run ignores the number, because a new run has no earlier event', async () => {
  const calling = call({ key: `key ${++keys}`, headers: { 'last-event-id': '5' } });
  const played = await gateway.worker.next();
  await played.items(['one']);
  await played.stops();
  expect(await textOf(await calling)).toBe(`${opening(0)}id: 1\ndata: one\n\n`);
});

test('a call for the whole answer ignores the number', async () => {
  const { key, run: played } = await run();
  await played.items(['one']);
  await played.stops();
  const answer = await call({ key, headers: { accept: 'application/json', 'last-event-id': '1' } });
  expect(JSON.parse(await textOf(answer))).toMatchObject({ result: ['one'] });
});

test('a malformed number returns 400', async () => {
  const { key, run: played } = await run();
  await played.stops();
  for (const query of ['?after=x', '?lastEventId=-1', '?after=1&after=2']) {
    const answer = await gateway.call({ query, body: '{}', headers: { 'idempotency-key': key } });
    expect([answer.status, errorOf(answer).code]).toEqual([400, 'invalid_request']);
  }
});
