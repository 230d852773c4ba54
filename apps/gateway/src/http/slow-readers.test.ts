// Contract 5, "Answers that wait for slow readers".
import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { bytesOf, textOf } from '@inference-proxy/test/client';
import { opening } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';
import { app, type PlayedRun } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ ANSWERS_IN_FLIGHT_BYTES: '2MiB' });
  await gateway.worker.start(app(), app({ app: 'site', kind: 'server', functions: [] }));
});
afterAll(() => gateway.stop());

/** A JSON text that is longer than all buffers of a connection and does not compress. */
const LARGE = JSON.stringify(randomBytes(9_000_000).toString('base64'));

/** Returns a run that has ended with this result. */
async function ended(json: string): Promise<PlayedRun> {
  const calling = gateway.call({ query: '?async=true', body: '{}' });
  const run = await gateway.worker.next();
  await calling;
  await run.returns(json);
  return run;
}

const path = (run: PlayedRun): string => `/v4/${PROJECT}/runs/${run.taken.runId}`;
const lookUp = (run: PlayedRun, more = ''): Promise<IncomingMessage> =>
  gateway.open(path(run) + more, { method: 'GET' });

/** Asks for a path on a connection that reads nothing. Resolves with the gateway's response object. */
async function stalled(at: GatewayUnderTest, target: string): Promise<ServerResponse> {
  const responses: ServerResponse[] = [];
  const onRequest = (message: unknown): void => void responses.push((message as { response: ServerResponse }).response);
  subscribe('http.server.request.start', onRequest);
  const socket = at
    .socket()
    .pause()
    .on('error', () => {});
  socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\n\r\n`);
  while (responses.length === 0) await new Promise((resolve) => setImmediate(resolve));
  unsubscribe('http.server.request.start', onRequest);
  return responses[0] as ServerResponse;
}

/** Resolves when the buffers of the answer's socket are full. */
async function full(response: ServerResponse): Promise<void> {
  while (!response.writableNeedDrain) await new Promise((resolve) => setImmediate(resolve));
}

describe('a large answer is sent unchanged in pieces:', () => {
  test('the envelope of a call, with its length', async () => {
    const calling = gateway.open(`/v4/${PROJECT}/chat/run`, { body: '{}' });
    const run = await gateway.worker.next();
    await run.returns(LARGE);
    const answer = await calling;
    const text = await textOf(answer);
    expect(Number(answer.headers['content-length'])).toBe(text.length);
    expect(JSON.parse(text)).toMatchObject({ status: 'succeeded', result: JSON.parse(LARGE) });
  });

  test('a look-up, and HEAD of it', async () => {
    const run = await ended(LARGE);
    expect(JSON.parse(await textOf(await lookUp(run)))).toMatchObject({
      status: 'succeeded',
      result: JSON.parse(LARGE),
    });
    const head = await gateway.request(path(run), { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
  });

  test('a list of items', async () => {
    const calling = gateway.call({ query: '?async=true', body: '{}' });
    const run = await gateway.worker.next();
    await calling;
    const items = Array.from({ length: 40 }, (_, n) => `${n} "${randomBytes(60_000).toString('base64')}"`);
    for (let n = 0; n < items.length; n += 2) await run.items(items.slice(n, n + 2));
    await run.stops();
    expect(JSON.parse(await textOf(await lookUp(run)))).toMatchObject({ items: 40, result: items });
  });

  test('the one event of a plain value', async () => {
    const run = await ended(LARGE);
    const text = await textOf(await lookUp(run, '/stream'));
    expect(text === `${opening(0)}id: 1\ndata: ${JSON.parse(LARGE)}\n\n`).toBe(true);
  });

  test('the answer of a custom runtime', async () => {
    const body = randomBytes(5_000_000);
    const calling = gateway.open(`/v4/${PROJECT}/site/file`, { method: 'GET' });
    const run = await gateway.worker.next('site');
    await run.answers({ status: 200, headers: [['content-type', 'image/png']], form: 'binary' }, body);
    const answer = await calling;
    expect(answer.headers).toMatchObject({ 'content-type': 'image/png', 'content-length': String(body.length) });
    expect((await bytesOf(answer)).equals(body)).toBe(true);
  });
});

test('at the bound, a large answer stays in the store until bytes are free, and a small answer does not wait', async () => {
  const [large, small] = [await ended(LARGE), await ended('"small"')];
  const held = [await stalled(gateway, path(large)), await stalled(gateway, path(large))];
  await Promise.all(held.map(full));
  const waiting = lookUp(large);
  expect(JSON.parse(await textOf(await lookUp(small)))).toMatchObject({ result: 'small' });
  expect(await Promise.race([waiting.then(() => 'answered'), lookUp(small).then(() => 'waits')])).toBe('waits');
  held[0]?.destroy();
  expect(JSON.parse(await textOf(await waiting))).toMatchObject({ result: JSON.parse(LARGE) });
  held[1]?.destroy();
});

test('a waiting reader that disconnects takes no place', async () => {
  const large = await ended(LARGE);
  const held = [await stalled(gateway, path(large)), await stalled(gateway, path(large))];
  await Promise.all(held.map(full));
  const leaving = await stalled(gateway, path(large));
  leaving.destroy();
  await once(leaving, 'close');
  for (const response of held) response.destroy();
  expect((await bytesOf(await lookUp(large))).length).toBeGreaterThan(LARGE.length);
});

describe('a reader that takes no bytes for `ANSWER_STALL_S` is disconnected:', () => {
  let hasty: GatewayUnderTest;
  beforeAll(async () => {
    hasty = await GatewayUnderTest.start({ ANSWER_STALL_S: '0.3' }, gateway);
  });
  afterAll(() => hasty.stop());

  test.each(['', '/stream'])('on the run’s path %j', async (more) => {
    const response = await stalled(hasty, path(await ended(LARGE)) + more);
    if (!response.closed) await once(response, 'close');
    expect(response.writableFinished).toBe(false);
  });

  test('but not a reader whose run takes longer', async () => {
    const calling = hasty.call({ body: '{}' });
    const run = await gateway.worker.next();
    // The stalled reader connects later and is disconnected first.
    const response = await stalled(hasty, path(await ended(LARGE)));
    if (!response.closed) await once(response, 'close');
    await run.returns('1');
    expect((await calling).status).toBe(200);
  });
});
