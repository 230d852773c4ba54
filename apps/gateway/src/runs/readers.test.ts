import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { errorOf, textOf } from '@inference-proxy/test/client';
import { afterOpening, opening } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createParser } from 'eventsource-parser';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

const WINDOW_BYTES = 256 * 1024;
let gateway: GatewayUnderTest;
let other: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ STREAM_WINDOW_BYTES: String(WINDOW_BYTES) });
  other = await GatewayUnderTest.start({}, gateway);
});
afterAll(async () => {
  await other.stop();
  await gateway.stop();
});

async function promised(): Promise<PlayedRun> {
  const calling = gateway.call({ query: '?async=true', body: '{}' });
  const run = await gateway.worker.next();
  await calling;
  return run;
}

const resume = (run: PlayedRun, at = gateway, headers = {}): Promise<IncomingMessage> =>
  at.open(`/v4/${PROJECT}/runs/${run.taken.runId}/stream`, { method: 'GET', headers });

/** Reads without pause and checks that events are in the order of their numbers. Resolves with the last number after the stream's end. */
function numbersOf(answer: IncomingMessage): { readonly seen: () => number; readonly last: Promise<number> } {
  let seen = 0;
  const parser = createParser({
    onEvent: ({ id }) => {
      if (Number(id) !== seen + 1) throw new Error(`event ${id} came after ${seen}`);
      seen += 1;
    },
  });
  const last = (async () => {
    const decoder = new TextDecoder();
    const events = answer.headers['content-encoding'] === 'gzip' ? answer.pipe(createGunzip()) : answer;
    for await (const chunk of events) parser.feed(decoder.decode(chunk as Buffer, { stream: true }));
    return seen;
  })();
  last.catch(() => {});
  return { seen: () => seen, last };
}

test('each of a thousand readers of one run at two gateways gets every item', async () => {
  const READERS = 1000;
  const ITEMS = 300;
  const run = await promised();
  await run.items(['0']);
  const readers: ReturnType<typeof numbersOf>[] = [];
  for (let n = 0; n < READERS; n += 50) {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, k) => resume(run, k % 2 ? gateway : other)));
    readers.push(...answers.map(numbersOf));
  }
  for (let n = 0; n < ITEMS; n += 10) await run.items(Array.from({ length: 10 }, (_, k) => `item ${n + k}`));
  await run.stops();
  const all = await Promise.all(readers.map(({ last }) => last));
  expect(all).toHaveLength(READERS);
  expect(new Set(all)).toEqual(new Set([1 + ITEMS]));
});

test('stalled readers cost the process bounded memory, and catch up from the log when they read again', async () => {
  const [READERS, ITEMS, SIZE] = [6, 800, 20_000];
  const run = await promised();
  await run.items(['0']);
  const responses: ServerResponse[] = [];
  const onRequest = (message: unknown): void => void responses.push((message as { response: ServerResponse }).response);
  subscribe('http.server.request.start', onRequest);
  const answers = await Promise.all(
    Array.from({ length: READERS }, (_, n) => resume(run, gateway, n % 2 ? { 'accept-encoding': 'gzip' } : {})),
  );
  unsubscribe('http.server.request.start', onRequest);
  for (const answer of answers) answer.pause();
  // Random text hardly compresses.
  const text = randomBytes((SIZE * 3) / 4).toString('base64');
  const held = (): number[] => responses.map((response) => response.writableLength);
  let most = 0;
  for (let n = 1; n < ITEMS; n++) {
    await run.items([`${n} ${text}`]);
    most = Math.max(most, ...held());
  }
  await run.stops();
  expect(responses).toHaveLength(READERS);
  // Each response holds its socket's bytes. Without the bound it would hold 16 MB.
  while (Math.min(...held()) === 0) await setImmediate();
  expect(Math.max(most, ...held())).toBeLessThan(256 * 1024);
  const readers = answers.map(numbersOf);
  expect(await Promise.all(readers.map(({ last }) => last))).toEqual(Array(READERS).fill(ITEMS));
});

test('a plain run advances at the pace of its fastest reader, and a reader behind the window gets `items_gone` and no later item', async () => {
  const calling = gateway.open(`/v4/${PROJECT}/chat/run?ids=true`, {
    body: '{}',
    headers: { accept: 'text/event-stream' },
  });
  const run = await gateway.worker.next();
  const { runId } = run.taken;
  await run.items(['0']);
  const stalled = await calling;
  stalled.pause();
  const fastest = numbersOf(await resume(run, other));
  const ITEMS = 1000;
  for (let n = 1; n < ITEMS; n++) {
    await run.items([`${n} ${'x'.repeat(20_000)}`]);
    // A function with credits waits for its fastest reader, too.
    while (fastest.seen() < n - 8) await setImmediate();
  }
  // The worker learns how far the fastest reader is, except for the newest items, which are reported later.
  while ((gateway.worker.taken.get(runId) ?? 0) <= ITEMS - 100) await setImmediate();
  const text = await textOf(stalled);
  await run.stops();
  expect(await fastest.last).toBe(ITEMS);
  const ids = [...afterOpening(0, text).matchAll(/^id: ([1-9]\d*)\n(event: error)?/gm)].map(([, id, error]) => [
    Number(id),
    error,
  ]);
  const last = ids.length - 1;
  expect(last).toBeLessThan(ITEMS);
  expect(ids).toEqual([...Array.from({ length: last }, (_, n) => [n + 1, undefined]), [last, 'event: error']]);
  expect(text).toMatch(/"code":"items_gone".*\n\n$/);
  // Continuing from there would leave a gap.
  const again = await gateway.get(`/v4/${PROJECT}/runs/${runId}/stream`, { 'last-event-id': String(last) });
  expect([again.status, errorOf(again).code]).toEqual([410, 'items_gone']);
  const fromStart = await gateway.get(`/v4/${PROJECT}/runs/${runId}/stream`);
  expect([fromStart.status, errorOf(fromStart).code]).toEqual([410, 'items_gone']);
  const full = await gateway.get(`/v4/${PROJECT}/runs/${runId}/stream?events=full`);
  expect([full.status, errorOf(full).code]).toEqual([410, 'items_gone']);
  const kept = await gateway.get(`/v4/${PROJECT}/runs/${runId}/stream`, { 'last-event-id': String(ITEMS - 1) });
  expect([kept.status, kept.text.startsWith(`${opening(ITEMS - 1)}id: ${ITEMS}\n`)]).toEqual([200, true]);
});

test('a slow reader of a promised run loses no item, because the store keeps all items', async () => {
  const run = await promised();
  await run.items(['0']);
  const stalled = await resume(run);
  stalled.pause();
  const ITEMS = 200;
  for (let n = 1; n < ITEMS; n++) await run.items([`${n} ${'x'.repeat(20_000)}`]);
  await run.stops();
  expect(await numbersOf(stalled).last).toBe(ITEMS);
});

test('a reader that closes its side of the connection gets the whole stream', async () => {
  const run = await promised();
  await run.items(['0']);
  const socket = gateway.socket();
  const path = `/v4/${PROJECT}/runs/${run.taken.runId}/stream`;
  socket.end(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\n\r\n`);
  let text = '';
  socket.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  while (!text.includes('data: 0\n\n')) await once(socket, 'data');
  await run.items(['1']);
  await run.stops();
  await once(socket, 'close');
  expect(text).toContain(opening(0));
  expect(text).toMatch(/id: 1\ndata: 0\n\n[\s\S]*id: 2\ndata: 1\n\n[\s\S]*\r\n0\r\n\r\n$/);
});
