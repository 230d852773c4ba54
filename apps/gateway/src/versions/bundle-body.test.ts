// Contract 7, "Deploy a version": the time limits of an upload, over a real connection. Only the timers of this process are the test's.
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { bundleBody, LONGEST_UPLOAD_MS } from './bundle-body.ts';

const IDLE_MS = 60_000;
const server = createServer();
let caller: Socket;
let body: AsyncGenerator<Buffer>;

beforeEach(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  caller = connect((server.address() as AddressInfo).port, '127.0.0.1');
  caller.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n');
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  // Sockets need the real `setImmediate` and `nextTick`.
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  body = bundleBody(response, { maxBytes: 1000, idleMs: IDLE_MS });
});
afterEach(async () => {
  jest.useRealTimers();
  caller.destroy();
  server.close();
  await once(server, 'close');
});

/** Sends one byte after a pause, and waits until the body has it. */
async function byteAfter(ms: number): Promise<void> {
  const next = body.next();
  await jest.advanceTimersByTimeAsync(ms);
  caller.write('x');
  expect(await next).toEqual({ done: false, value: Buffer.from('x') });
}

const late = (message: string) => ({ code: 'invalid_request', message });

test('an upload that is slow and steady is not cut off', async () => {
  for (let bytes = 0; bytes < 20; bytes++) await byteAfter(IDLE_MS - 1);
  await body.return(undefined);
});

test('an upload without a byte for the time limit ends', async () => {
  await byteAfter(IDLE_MS - 1);
  const next = expect(body.next()).rejects.toMatchObject(
    late('No byte of the bundle arrived for 60 s; send it again.'),
  );
  await jest.advanceTimersByTimeAsync(IDLE_MS);
  await next;
});

test('a steady upload ends after the longest time', async () => {
  for (let bytes = 0; bytes < LONGEST_UPLOAD_MS / IDLE_MS; bytes++) await byteAfter(IDLE_MS - 1);
  const next = expect(body.next()).rejects.toMatchObject(
    late('The bundle did not arrive within 3600 s; send it again.'),
  );
  await jest.advanceTimersByTimeAsync(LONGEST_UPLOAD_MS / IDLE_MS);
  await next;
});
