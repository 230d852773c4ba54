import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { bytesOf, textOf } from '@inference-proxy/test/client';
import { OWN_STREAM } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { Redis } from 'ioredis';
import { GatewayUnderTest, NEVER_MS, PROJECT, token } from '../../test/gateway-under-test.ts';
import { app } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ STREAM_COMMIT_MS: String(NEVER_MS) });
});
afterAll(() => gateway.stop());

/** Returns the body of chunks (RFC 9112 §7.1) that contain ASCII only. */
function dechunked(text: string): string {
  let body = '';
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, end), 16);
    if (size === 0) return body;
    body += text.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}

/** Returns a stream piece by piece, as the pieces arrive. */
function piecesOf(answer: IncomingMessage): () => Promise<string> {
  const pieces: AsyncIterator<Buffer> = answer[Symbol.asyncIterator]();
  return async () => String((await pieces.next()).value);
}

test('each item is one event, which is sent when the item is yielded', async () => {
  const streaming = gateway.stream();
  const run = await gateway.worker.next();
  await run.items(['one']);
  const answer = await streaming;
  const piece = piecesOf(answer);
  expect(await piece()).toBe('data: one\n\n');
  await run.items(['two', 'three']);
  expect(await piece()).toBe('data: two\n\ndata: three\n\n');
  await run.items(['{"n":1.0}'], 'j');
  expect(await piece()).toBe('data: {"n":1.0}\n\n');
  await run.stops();
  expect(await piece()).toBe('undefined');
});

test('the bytes of a stream are exact, from its status line to its end', async () => {
  const socket = gateway.socket();
  let text = '';
  socket.setEncoding('latin1').on('data', (read: string) => {
    text += read;
  });
  socket.write(
    `POST /v4/${PROJECT}/chat/run?ids=true HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${token()}\r\naccept: text/event-stream\r\n\r\n`,
  );
  const run = await gateway.worker.next();
  await run.items(['one\ntwo\nlines'], 'm');
  await run.stops();
  await once(socket, 'close');
  const [head = '', ...chunks] = text.split('\r\n\r\n');
  const [status, ...headers] = head
    .replace(run.taken.runId, '<run id>')
    .replace(/(?<=date: ).*/i, '<date>')
    .replace(/(?<=service-time: )\d+/, '<ms>')
    .split('\r\n');
  expect(status).toBe('HTTP/1.1 200 OK');
  expect(headers.sort()).toEqual([
    'Connection: close',
    'Date: <date>',
    'Transfer-Encoding: chunked',
    'cache-control: no-cache',
    'content-type: text/event-stream; charset=utf-8',
    'server: inference-proxy',
    'vary: Accept-Encoding',
    'x-accel-buffering: no',
    'x-envoy-upstream-service-time: <ms>',
    'x-request-id: <run id>',
  ]);
  expect(dechunked(chunks.join('\r\n\r\n'))).toBe('retry: 1000\nid: 0\n\nid: 1\ndata: one\ndata: two\ndata: lines\n\n');
});

test('a failure before the first item has its real status and a JSON body', async () => {
  const streaming = gateway.stream();
  const run = await gateway.worker.next();
  await run.fails({ code: 'function_error', message: 'no', type: 'ValueError' });
  const answer = await streaming;
  expect(answer.statusCode).toBe(500);
  expect(JSON.parse(await textOf(answer))).toMatchObject({ run_id: run.taken.runId, status: 'failed' });
});

test('a failure after the first item is the last event', async () => {
  const streaming = gateway.stream();
  const run = await gateway.worker.next();
  await run.items(['one']);
  await run.fails({ code: 'replica_crashed', message: 'gone' });
  const text = await textOf(await streaming);
  const [, data] = /^data: one\n\nevent: error\ndata: (.*)\n\n$/.exec(text) ?? [];
  expect(JSON.parse(data ?? '')).toEqual({
    run_id: run.taken.runId,
    error: { code: 'replica_crashed', message: 'gone', retryable: true },
  });
});

test.each(['', '?ids=true'])(
  'a failure reaches a reader with more items than the store, which lost its last writes (%s)',
  async (query) => {
    const streaming = gateway.open(`/v4/${PROJECT}/chat/run${query}`, {
      body: '{}',
      headers: { accept: 'text/event-stream' },
    });
    const run = await gateway.worker.next();
    await run.items(['one']);
    const answer = await streaming;
    const piece = piecesOf(answer);
    expect(await piece()).toMatch(/data: one\n\n$/);
    await run.items(['two']);
    expect(await piece()).toMatch(/data: two\n\n$/);
    const store = new Redis(gateway.redis.socket ?? String(gateway.redis.port));
    await store.hset(`ip:{${PROJECT}}:run:${run.taken.runId}`, 'items', 1);
    store.disconnect();
    await run.fails({ code: 'worker_lost', message: 'gone' }, 'failed', 1);
    expect(await piece()).toMatch(/event: error\ndata: .*worker_lost/);
  },
);

test('the status line is held back for a limited time', async () => {
  const hasty = await GatewayUnderTest.start({ STREAM_COMMIT_MS: '150' }, gateway);
  const streaming = hasty.stream();
  const run = await gateway.worker.next();
  const answer = await streaming;
  expect(answer.statusCode).toBe(200);
  const text = textOf(answer);
  await run.fails({ code: 'timed_out', message: 'too slow' }, 'timed_out');
  expect(await text).toMatch(/^event: error\ndata: .*"timed_out".*\n\n$/);
  await hasty.stop();
});

test('a plain value is one event, a string as its text', async () => {
  for (const [json, event] of [
    ['{"a":1.0}', 'data: {"a":1.0}\n\n'],
    ['"two\\nlines"', 'data: two\ndata: lines\n\n'],
    ['null', 'data: null\n\n'],
  ] as const) {
    const streaming = gateway.stream();
    const run = await gateway.worker.next();
    await run.returns(json);
    expect(await textOf(await streaming)).toBe(event);
  }
});

test('a generator without items is an empty stream', async () => {
  const streaming = gateway.stream();
  const run = await gateway.worker.next();
  await run.stops();
  const answer = await streaming;
  expect(answer.statusCode).toBe(200);
  expect(await textOf(answer)).toBe('');
});

test('ready-made events are sent unchanged, unless the app disables them', async () => {
  for (const [preformatted, text] of [
    [true, 'data: {"x":1}\n\n'],
    [false, 'data: data: {"x":1}\ndata: \ndata: \n\n'],
  ] as const) {
    await gateway.worker.store.announce(PROJECT, app({ preformatted }));
    let seen = '';
    // Announcements arrive by a channel, with a delay.
    while (seen !== text) {
      const streaming = gateway.stream();
      const run = await gateway.worker.next();
      await run.items(['data: {"x":1}\n\n'], 'm');
      await run.stops();
      seen = await textOf(await streaming);
    }
  }
  await gateway.worker.store.announce(PROJECT, app());
});

test('a caller that accepts gzip gets every event at once, compressed', async () => {
  const streaming = gateway.stream({ 'accept-encoding': 'gzip;q=0.5' });
  const run = await gateway.worker.next();
  await run.items(['one']);
  const answer = await streaming;
  expect(answer.headers['content-encoding']).toBe('gzip');
  const chunks: Buffer[] = [];
  answer.on('data', (chunk: Buffer) => chunks.push(chunk));
  const decoded = () => gunzipSync(Buffer.concat(chunks), { finishFlush: 2 }).toString();
  while (chunks.length < 2) await once(answer, 'data');
  expect(decoded()).toBe('data: one\n\n');
  await run.items(['x'.repeat(20_000)]);
  await run.stops();
  await once(answer, 'end');
  expect(gunzipSync(Buffer.concat(chunks)).toString()).toBe(`data: one\n\ndata: ${'x'.repeat(20_000)}\n\n`);
});

test('a run is cancelled when its reader disconnects', async () => {
  const streaming = gateway.stream();
  const run = await gateway.worker.next();
  await run.items(['one']);
  const answer = await streaming;
  const cancelled = gateway.worker.cancelled();
  answer.destroy();
  expect(await cancelled).toBe(run.taken.runId);
  await run.fails({ code: 'cancelled', message: 'cancelled' }, 'cancelled');
});

test('a reader that closes its side of the connection gets the whole stream', async () => {
  const socket = gateway.socket();
  socket.end(
    `POST /v4/${PROJECT}/chat/run HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\naccept: text/event-stream\r\n\r\n`,
  );
  let text = '';
  socket.setEncoding('utf8').on('data', (read: string) => {
    text += read;
  });
  const run = await gateway.worker.next();
  await run.items(['one']);
  while (!text.includes('data: one\n\n')) await once(socket, 'data');
  await run.items(['two']);
  await run.stops();
  await once(socket, 'close');
  expect(text).toMatch(/data: one\n\n[\s\S]*data: two\n\n\r\n(?:e\r\n: keep-alive\n\n\r\n)*0\r\n\r\n$/);
});

test('a slow reader causes backpressure, and later catches up from the log without a gap', async () => {
  const streaming = gateway.stream();
  const run = await gateway.worker.next();
  const item = (n: number): string => `${n} ${'x'.repeat(10_000)}`;
  await run.items([item(0)]);
  const answer = await streaming;
  answer.pause();
  const count = 1500;
  for (let n = 1; n < count; n++) await run.items([item(n)]);
  // Only the sockets' buffers are full. A worker with credits would hold the generator from here on.
  const taken = (): number => gateway.worker.taken.get(run.taken.runId) ?? 0;
  while (taken() === 0) await setImmediate();
  expect(taken()).toBeLessThan(count * 0.8);
  await run.stops();
  const events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => events.push(event) });
  parser.feed((await bytesOf(answer)).toString());
  expect(events.map(({ data }) => Number(data.split(' ', 1)[0]))).toEqual([...Array(count).keys()]);
});

test('two pipelined calls on one connection are answered one after the other', async () => {
  const socket = gateway.socket();
  const call = `POST /v4/${PROJECT}/chat/run HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\naccept: text/event-stream\r\n\r\n`;
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.write(call + call);
  const first = await gateway.worker.next();
  const second = await gateway.worker.next();
  await second.items(['second']);
  await second.stops();
  await first.items(['first']);
  await first.stops();
  while (!text.includes('data: second\n\n\r\n0\r\n')) await once(socket, 'data');
  expect(text.indexOf('data: first')).toBeGreaterThan(0);
  expect(text.indexOf('data: first')).toBeLessThan(text.indexOf('data: second'));
  socket.destroy();
});

test('the next request on the connection of a stream is answered after the stream, even if it arrives before the end', async () => {
  const socket = gateway.socket();
  let text = '';
  socket.setEncoding('utf8').on('data', (read: string) => {
    text += read;
  });
  const head = `host: x\r\nauthorization: Bearer ${token()}\r\n`;
  const call = `POST /v4/${PROJECT}/chat/run HTTP/1.1\r\n${head}accept: text/event-stream\r\n\r\n`;
  socket.write(call);
  const run = await gateway.worker.next();
  await run.items(['one']);
  while (!text.includes('data: one\n\n')) await once(socket, 'data');
  socket.write(`GET /v4/${PROJECT}/runs/${run.taken.runId} HTTP/1.1\r\n${head}\r\n`);
  await run.items(['two']);
  while (!text.includes('data: two\n\n')) await once(socket, 'data');
  // No other answer ever interrupts a stream.
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  await run.stops();
  while (!text.includes(`"run_id":"${run.taken.runId}"`)) await once(socket, 'data');
  expect(text).toMatch(/data: two\n\n\r\n0\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  // The connection accepts further requests.
  socket.write(call);
  const second = await gateway.worker.next();
  await second.items(['three']);
  await second.stops();
  while (!text.endsWith('data: three\n\n\r\n0\r\n\r\n')) await once(socket, 'data');
  socket.destroy();
});

test('a large stream that waits behind another stream on its connection arrives whole', async () => {
  const socket = gateway.socket();
  let text = '';
  socket.setEncoding('utf8').on('data', (read: string) => {
    text += read;
  });
  const call = `POST /v4/${PROJECT}/chat/run HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\naccept: text/event-stream\r\n\r\n`;
  socket.write(call);
  const first = await gateway.worker.next();
  socket.write(call);
  const second = await gateway.worker.next();
  const count = 100;
  for (let n = 0; n < count; n++) await second.items([`${n} ${'x'.repeat(10_000)}`]);
  await second.stops();
  await first.items(['first']);
  await first.stops();
  while (!text.endsWith('\r\n0\r\n\r\n') || !text.includes(`data: ${count - 1} x`)) await once(socket, 'data');
  expect([...text.matchAll(/data: (\w+)/g)].map(([, word]) => word)).toEqual([
    'first',
    ...Array.from({ length: count }, (_, n) => String(n)),
  ]);
  socket.destroy();
});

describe('the head of a stream is exact:', () => {
  const HEAD = {
    ...OWN_STREAM,
    'x-request-id': expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
    date: expect.stringMatching(/ GMT$/),
    'x-envoy-upstream-service-time': expect.stringMatching(/^\d+$/),
    connection: expect.stringMatching(/^(close|keep-alive)$/),
  };
  const GZIP = { ...HEAD, 'content-encoding': 'gzip' };
  test.each<[string, string, Record<string, string>, object]>([
    ['a plain stream', '', {}, HEAD],
    ['for a caller without compression', '', { 'accept-encoding': 'identity' }, HEAD],
    ['for a caller that refuses gzip', '', { 'accept-encoding': 'br, gzip;q=0' }, HEAD],
    ['compressed', '', { 'accept-encoding': 'gzip' }, GZIP],
    ['compressed, among several', '', { 'accept-encoding': 'deflate, gzip;q=0.5, br' }, GZIP],
    ['for a caller that accepts any compression', '', { 'accept-encoding': '*' }, GZIP],
    ['with numbers', '?ids=true', {}, HEAD],
    ['with all events', '?events=full', { 'accept-encoding': 'gzip' }, GZIP],
  ])('%s', async (_, query, headers, expected) => {
    const calling = gateway.open(`/v4/${PROJECT}/chat/run${query}`, {
      body: '{}',
      headers: { accept: 'text/event-stream', ...headers },
    });
    const run = await gateway.worker.next();
    await run.items(['one']);
    await run.stops();
    const answer = await calling;
    answer.resume();
    // Exactly these headers, in any order.
    expect(answer.headers).toEqual(expected);
    expect(answer.headers['x-request-id']).toBe(run.taken.runId);
    await once(answer, 'end');
  });
});
