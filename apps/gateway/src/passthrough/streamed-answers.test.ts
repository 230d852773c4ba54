// Contract 3: streams of apps that are web servers, their failures, and their readers.
import { once } from 'node:events';
import { textOf } from '@inference-proxy/test/client';
import { EVERY_STREAM } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type GatewayUnderTest, token } from '../../test/gateway-under-test.ts';
import { head, SITE, SiteUnderTest, SSE } from '../../test/site-under-test.ts';

let site: SiteUnderTest;
let gateway: GatewayUnderTest;
beforeAll(async () => {
  site = await SiteUnderTest.start();
  gateway = site.gateway;
});
afterAll(() => gateway.stop());

test('the head of a stream arrives before its first item, and events keep their names and ids', async () => {
  const answering = site.get('/events', { accept: 'application/json' });
  const run = await site.next();
  await run.begins(head('sse', 'text/event-stream; charset=utf-8', { status: 206, headers: [['X-Own', '1']] }));
  const answer = await answering;
  expect(answer.statusCode).toBe(206);
  expect(answer.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'x-own': '1',
    ...EVERY_STREAM,
    'x-request-id': run.taken.runId,
  });
  await run.items(['one', 'two']);
  await run.items(['event: tick\nid: 7\ndata: three\n\n'], 'm');
  await run.stops(SSE);
  expect(await textOf(answer)).toBe('data: one\n\ndata: two\n\nevent: tick\nid: 7\ndata: three\n\n');
});

test('lines arrive as lines, and pieces of text arrive as one text', async () => {
  const lines = site.get('/lines');
  const one = await site.next();
  await one.begins(head('ndjson', 'application/x-ndjson'));
  await one.items(['{"n":1}', '{"n":2.0}'], 'j');
  await one.items(['no json']);
  await one.stops(head('ndjson', 'application/x-ndjson'));
  expect(await textOf(await lines)).toBe('{"n":1}\n{"n":2.0}\nno json\n');
  const text = site.get('/text');
  const other = await site.next();
  await other.begins(head('chunks', 'text/plain'));
  await other.items(['one ', 'two']);
  await other.items(['\nthree\n'], 'm');
  await other.stops(head('chunks', 'text/plain'));
  expect(await textOf(await text)).toBe('one two\nthree\n');
  expect(await site.lookUp(other.taken.runId)).toMatchObject({
    result: 'one two\nthree\n',
    content_type: 'text/plain',
  });
});

test.each([
  [
    'sse',
    'text/event-stream',
    /^data: one\n\nevent: error\ndata: {"run_id":".*","error":{"code":"upstream_reset",.*}}\n\n$/,
  ],
  ['ndjson', 'application/x-ndjson', /^one\n{"run_id":".*","error":{"code":"upstream_reset",.*}}\n$/],
] as const)('a stream that breaks off never ends silently: %s', async (form, type, text) => {
  const answering = site.get('/broken');
  const run = await site.next();
  await run.begins(head(form, type));
  await run.items(['one']);
  await run.fails({ code: 'upstream_reset', message: 'The server broke off.' });
  expect(await textOf(await answering)).toMatch(text);
});

test.each(['1.1', '1.0'])(
  'text that breaks off is visibly incomplete for its reader, over HTTP/%s',
  async (version) => {
    const socket = gateway.socket();
    socket.write(
      `GET ${SITE}/text HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${token()}\r\nConnection: keep-alive\r\n\r\n`,
    );
    let text = '';
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    const run = await site.next();
    await run.begins(head('chunks', 'text/plain'));
    await run.items(['one']);
    while (!text.includes('one')) await once(socket, 'data');
    const closed = once(socket, 'close').catch((error: NodeJS.ErrnoException) => error.code);
    await run.fails({ code: 'upstream_reset', message: 'The server broke off.' });
    // A length or a last chunk would make this body look complete.
    // If the end of the connection ends the body (HTTP/1.0), only a reset shows the failure.
    expect(await closed).toEqual(version === '1.0' ? 'ECONNRESET' : [false]);
    expect(text).not.toMatch(/\r\n0\r\n\r\n$/);
  },
);

test('a run is cancelled when its caller disconnects', async () => {
  const leaving = new AbortController();
  const answering = gateway.open(`${SITE}/long`, { method: 'GET', signal: leaving.signal });
  const run = await site.next();
  await run.begins(SSE);
  (await answering).on('error', () => {});
  const cancelled = gateway.worker.cancelled();
  leaving.abort();
  expect(await cancelled).toBe(run.taken.runId);
  await run.fails({ code: 'cancelled', message: 'no reader' }, 'cancelled');
});

test.each(['ndjson', 'chunks'] as const)(
  'a caller that closes its side counts as disconnected if no probe can be written: %s',
  async (form) => {
    const socket = gateway.socket();
    socket.resume().write(`GET ${SITE}/quiet HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token()}\r\n\r\n`);
    const run = await site.next();
    await run.begins(head(form, 'text/plain'));
    await once(socket, 'data');
    const cancelled = gateway.worker.cancelled();
    socket.end();
    expect(await cancelled).toBe(run.taken.runId);
    await run.fails({ code: 'cancelled', message: 'no reader' }, 'cancelled');
  },
);

test('a slow reader causes backpressure, and gets every item when it reads again', async () => {
  const answering = site.get('/lines');
  const run = await site.next();
  await run.begins(head('ndjson', 'application/x-ndjson'));
  const answer = await answering;
  answer.pause();
  const line = (n: number): string => `${n} ${'x'.repeat(10_000)}`;
  const count = 1500;
  for (let n = 0; n < count; n++) await run.items([line(n)]);
  const taken = gateway.worker.taken.get(run.taken.runId) ?? 0;
  expect(taken).toBeLessThan(count * 0.8);
  await run.stops(head('ndjson', 'application/x-ndjson'));
  const numbers = (await textOf(answer))
    .trimEnd()
    .split('\n')
    .map((text) => Number(text.split(' ', 1)[0]));
  expect(numbers).toEqual([...Array(count).keys()]);
});
