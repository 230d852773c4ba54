import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGunzip } from 'node:zlib';
import { open } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { NEVER } from 'rxjs';
import { isFull, KeepAlive, LiveResponse, writeEventsHead } from './live-response.ts';

let server: Server;
beforeAll(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const keepAlives = new KeepAlive(1000);
const END = { how: 'complete' } as const;
/** A run without entries. */
const silent = { events: () => NEVER };
const nothing = { next() {}, finish() {}, fail() {} };

/** Returns a response that the test controls, and the answer that its reader gets. */
async function streamed(gzip: boolean): Promise<{ response: LiveResponse; answer: IncomingMessage }> {
  const requested = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  const answering = open((server.address() as AddressInfo).port, '/', { method: 'GET' });
  const [, raw] = await requested;
  const response = new LiveResponse(raw, silent, keepAlives, nothing);
  writeEventsHead(raw, { requestId: '0199', startedAt: performance.now(), gzip });
  response.open({ gzip, comments: true });
  raw.flushHeaders();
  return { response, answer: await answering };
}

test.each([
  ['an idle stream carries a comment', false],
  ['an idle compressed stream carries a comment, which is decoded at once', true],
])('%s', async (_, gzip) => {
  const { response, answer } = await streamed(gzip);
  const [comment] = await once(gzip ? answer.pipe(createGunzip()) : answer, 'data');
  expect(String(comment)).toBe(': keep-alive\n\n');
  response.end(END);
});

test('a reader that has bytes to take gets no comment', async () => {
  const { response, answer } = await streamed(false);
  answer.pause();
  const events = Buffer.alloc(64 * 1024, 'x');
  while (!isFull(response.raw)) {
    response.write(events);
    await new Promise(setImmediate);
  }
  const before = response.raw.writableLength;
  response.keepAlive();
  expect(response.raw.writableLength).toBe(before);
  // The response is full only while its reader takes no bytes.
  answer.resume();
  await once(response.raw, 'drain');
  expect(isFull(response.raw)).toBe(false);
  response.end(END);
});

test('bytes for a disconnected reader are dropped', async () => {
  const { response, answer } = await streamed(false);
  answer.on('error', () => {}).destroy();
  await once(response.raw, 'close');
  response.write(Buffer.from('data: x\n\n'));
  expect(isFull(response.raw)).toBe(false);
  response.end(END);
  expect(keepAlives.size).toBe(0);
});
