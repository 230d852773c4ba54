// Contract 1, "Custom runtimes": the request that reaches a server, and the answer that reaches the run. On FastAPI, plain Node and a bare socket.
import { createServer } from 'node:net';
import { type FastApi, obtainFastApi } from '@inference-proxy/test/fastapi';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Runtime } from '../runtime.ts';
import { type Call, reached } from '../testing/calls.ts';
import { RecordedLog, request, serverRuntime } from '../testing/servers.ts';
import { freePort } from './ports.ts';

const fastApi: FastApi = await obtainFastApi();
const log = new RecordedLog();
let fast: Runtime;
let raw: Runtime;

beforeAll(async () => {
  fast = serverRuntime(log, {
    folder: 'fastapi',
    entrypoint: [fastApi.python, '-m', 'uvicorn', 'main:app', '--port', '{port}'],
    env: fastApi.env,
  });
  raw = serverRuntime(log, { folder: 'raw' });
  for (const runtime of [fast, raw]) runtime.start();
  await Promise.all([fast, raw].map((runtime) => reached(runtime, 'ready')));
});
afterAll(() => Promise.all([fast.close(), raw.close()]));

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: [string, string][];
  readonly body: string;
}

const seen = async (call: Call): Promise<Seen> => JSON.parse((await call.result()) ?? 'null') as Seen;

test('method, path, query, headers and body reach the server unchanged', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  const call = request(fast, '/seen/a%2Fb/../c?x=1&x=2&q=%C3%BC+', {
    method: 'PATCH',
    headers: [
      ['X-Twice', 'one'],
      ['x-twice', 'two'],
      ['Content-Type', 'application/x-own'],
      ['X-Latin', '\xe9'],
    ],
    body: bytes,
  });
  const there = await seen(call);
  expect(there).toMatchObject({ method: 'PATCH', query: 'x=1&x=2&q=%C3%BC+', body: bytes.toString('latin1') });
  expect(there.path).toBe('/seen/a%2Fb/../c');
  expect(there.headers.filter(([name]) => name === 'x-twice').map(([, value]) => value)).toEqual(['one', 'two']);
  expect(there.headers).toEqual(
    expect.arrayContaining([
      ['content-type', 'application/x-own'],
      ['x-latin', '\xe9'],
      ['content-length', '256'],
      ['accept-encoding', 'identity'],
      ['x-request-id', call.runId],
    ]),
  );
});

test('the server receives the trace, and the worker sets the headers of the connection', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const call = request(fast, '/seen/', {
    headers: [
      ['traceparent', 'theirs'],
      ['host', 'elsewhere'],
      ['x-request-id', 'theirs'],
      ['accept-encoding', 'gzip'],
    ],
    traceparent,
  });
  const { headers } = await seen(call);
  const of = (wanted: string) => headers.filter(([name]) => name === wanted).map(([, value]) => value);
  expect(of('traceparent')).toEqual([traceparent]);
  expect(of('x-request-id')).toEqual([call.runId]);
  expect(of('accept-encoding')).toEqual(['identity']);
  expect(of('host')).toEqual([expect.stringMatching(/^localhost:\d+$/)]);
  expect(of('content-length')).toEqual([]);
});

test('a server sees its port and its app’s variables, and no variable of its worker', async () => {
  const environment = JSON.parse((await request(fast, '/environment').result()) ?? '{}') as Record<string, string>;
  expect(environment).toMatchObject({ PROJECT_ID: 'demo', APP_NAME: 'test', PORT: expect.stringMatching(/^\d+$/) });
  expect(environment).not.toHaveProperty('REDIS_URL');
});

test.each([200, 201, 404, 422, 500, 503])('a status of %s is an ordinary answer', async (status) => {
  const end = await request(fast, `/status/${status}`).ended;
  expect(end).toMatchObject({ state: 'succeeded', statusCode: status, head: { status, form: 'json' } });
  expect(end.result?.toString()).toBe(`{"so":${status}}`);
  expect(end.head?.headers).toEqual(
    expect.arrayContaining([
      ['x-own', 'yes'],
      ['set-cookie', 'a=b'],
    ]),
  );
});

test('bytes arrive unchanged', async () => {
  const end = await request(fast, '/bytes').ended;
  expect(end.head?.form).toBe('binary');
  expect([...(end.result ?? [])]).toEqual(Array.from({ length: 256 }, (_, n) => n));
});

const framesOf = (call: Call): [string, string][] => call.frames.map(({ kind, blob }) => [kind, blob.toString()]);

test('each line of NDJSON is an item: JSON if the line is JSON, else a string', async () => {
  const call = request(fast, '/lines');
  expect(await call.ended).toMatchObject({ state: 'succeeded', streamed: true, items: 3 });
  expect(call.head).toMatchObject({ status: 200, form: 'ndjson' });
  expect(call.items).toEqual(['{"a": 1}', 'not json', '[1, 2]']);
  expect(framesOf(call).map(([kind]) => kind)).toContain('s');
});

test('each piece of a chunked text is an item', async () => {
  const call = request(fast, '/pieces');
  expect(await call.ended).toMatchObject({ state: 'succeeded', streamed: true });
  expect(call.head?.form).toBe('chunks');
  expect(Buffer.concat(call.frames.map(({ blob }) => blob)).toString()).toBe('eins zwei\ndrü');
});

test('an event with only data becomes its data, and names, ids and retry times are kept', async () => {
  const call = request(fast, '/named');
  expect(await call.ended).toMatchObject({ state: 'succeeded', items: 3 });
  expect(framesOf(call)).toEqual([
    ['m', 'event: delta\nid: 7\nretry: 10\ndata: {"x": 1}\n\n'],
    ['m', 'two\nlines'],
    ['s', 'plain'],
  ]);
});

test.each([
  ['closes-at-once', 'upstream_unavailable', 0],
  ['resets-at-once', 'upstream_unavailable', 0],
  ['closes-mid-head', 'upstream_reset', 0],
  ['resets-mid-head', 'upstream_reset', 0],
  ['closes-mid-body', 'upstream_reset', 0],
  ['resets-mid-body', 'upstream_reset', 0],
  ['closes-mid-chunk', 'upstream_reset', 1],
  ['closes-between-chunks', 'upstream_reset', 1],
  ['resets-mid-stream', 'upstream_reset', 1],
  ['ends-mid-event', 'upstream_reset', 1],
  ['ends-mid-event-without-framing', 'upstream_reset', 1],
  ['length-too-long', 'upstream_reset', 0],
  ['length-too-short', 'upstream_reset', 0],
  ['length-too-short-and-closes', 'upstream_reset', 0],
  ['two-lengths', 'upstream_reset', 0],
  ['length-that-is-none', 'upstream_reset', 0],
  ['chunk-size-that-is-none', 'upstream_reset', 0],
  ['only-continues', 'upstream_reset', 0],
  ['switches-protocols', 'upstream_reset', 0],
  ['garbage', 'upstream_reset', 0],
  ['status-that-is-none', 'upstream_reset', 0],
  ['header-that-is-none', 'upstream_reset', 0],
  ['endless-head', 'upstream_reset', 0],
  ['large-head', 'upstream_reset', 0],
  ['endless-body', 'output_too_large', 0],
  ['large-length', 'output_too_large', 0],
  ['endless-line', 'output_too_large', 0],
])('a server that %s is reported as %s, after %s items', async (way, code, items) => {
  const call = request(raw, `/${way}`, { method: 'POST' });
  const end = await call.ended;
  expect(end).toMatchObject({ state: 'failed', items, error: { code } });
  expect(end.error?.message).toMatch(/\S/);
  expect(call.count).toBe(items);
  expect(await request(raw, '/fine').result()).toBe('fine');
  expect(call.ends).toBe(1);
});

test.each(['never-answers', 'never-ends-its-head', 'never-ends-its-body'])(
  'a server that %s is waited for as long as the run may take, and no longer',
  async (way) => {
    const short = serverRuntime(log, { folder: 'raw', timeoutMs: 400 });
    short.start();
    await reached(short, 'ready');
    expect(await request(short, `/${way}`).ended).toMatchObject({ state: 'timed_out', error: { code: 'timed_out' } });
    await short.close();
  },
);

test('a kept connection that the server has closed fails only requests that may not be repeated', async () => {
  for (const _ of [1, 2, 3]) expect(await request(raw, '/one-each').result()).toBe('fine');
  // The requests share one connection, one after the other, unless the connection was closed in the meantime because it was idle.
  const codes: (string | undefined)[] = [];
  for (let n = 0; n < 20; n++) codes.push((await request(raw, '/one-each', { method: 'POST' }).ended).error?.code);
  expect(codes).toContain('upstream_unavailable');
  expect(codes).toContain(undefined);
});

test('a refusal reaches the caller although its server closes the connection with the body unread', async () => {
  const body = Buffer.alloc(8 * 2 ** 20);
  for (let n = 0; n < 20; n++) {
    const call = request(raw, '/refuses-a-body', { method: 'POST', body });
    expect(await call.ended).toMatchObject({ state: 'succeeded', head: { status: 413 } });
    expect(await call.result()).toBe('no');
  }
});

test('the rest of the body is not sent to a server that has answered', async () => {
  const body = Buffer.alloc(64 * 2 ** 20);
  const port = await freePort();
  const left = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<void>();
  const server = createServer().listen(port, '127.0.0.1');
  const away = serverRuntime(log, {
    url: `http://127.0.0.1:${port}`,
    watch: { readyEveryMs: 50, wellEveryMs: 60_000, answerMs: 5_000 },
  });
  away.start();
  await reached(away, 'ready');
  // The probe's connections have opened and closed.
  server.on('connection', (socket) => {
    socket.on('error', () => {}).on('close', () => left.resolve(socket.bytesRead));
    socket.once('data', () => socket.pause().write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nearly'));
    // The server continues to read, late.
    ended.promise.then(() => {
      socket.on('data', () => {
        if (socket.bytesRead > body.length) left.resolve(socket.bytesRead);
      });
      socket.resume();
    });
  });
  expect(await request(away, '/', { method: 'POST', body }).result()).toBe('early');
  ended.resolve();
  expect(await left.promise).toBeLessThan(body.length);
  await away.close();
  await new Promise((resolve) => server.close(resolve));
});

test('interim answers are skipped', async () => {
  expect(await request(raw, '/continues-first').result()).toBe('at last');
});

test('an answer without a length that ends with its connection is complete', async () => {
  expect(await request(raw, '/old-protocol').result()).toBe('{"old": 1}');
  expect(await request(raw, '/ends-without-framing').ended).toMatchObject({ state: 'succeeded', items: 1 });
});

test('answers without a body have no body, and keep their headers about a body', async () => {
  const none = await request(raw, '/no-content').ended;
  expect(none).toMatchObject({ state: 'succeeded', head: { status: 204, headers: [['x-own', 'yes']] } });
  expect(none.result).toBeUndefined();
  const same = await request(raw, '/not-modified').ended;
  expect(same.head?.headers).toEqual([
    ['etag', '"a"'],
    ['content-length', '7'],
  ]);
  const head = await request(fast, '/bytes', { method: 'HEAD' }).ended;
  expect(head).toMatchObject({ state: 'succeeded', streamed: false });
  expect(head.result).toBeUndefined();
});

test('the bytes of an answer that is compressed without a request for it are unchanged', async () => {
  const end = await request(raw, '/compressed').ended;
  expect(end).toMatchObject({ streamed: false, head: { form: 'binary' } });
  expect(end.head?.headers).toContainEqual(['content-encoding', 'gzip']);
  expect(end.result).toEqual(Buffer.from([0x1f, 0x8b, 8, 0]));
});

test('headers of the connection are removed, and other headers keep their order and spelling', async () => {
  const { head } = await request(raw, '/sheds-headers').ended;
  expect(head?.headers).toEqual([
    ['X-Kept', 'a'],
    ['x-kept', 'b'],
  ]);
});

test('events may use any line ending, with pieces of any size', async () => {
  const call = request(raw, '/odd-line-ends');
  expect(await call.ended).toMatchObject({ state: 'succeeded' });
  expect(call.items).toEqual(['cr', 'crlf', 'lf']);
});

test('the pieces of a text are whole characters', async () => {
  const call = request(raw, '/cut-characters');
  await call.ended;
  expect(call.frames.map(({ blob }) => blob.toString())).toEqual(['a', 'ü', '\u{1F600}', 'b']);
});

test('a text in another charset is one result, not pieces', async () => {
  const end = await request(raw, '/latin-text').ended;
  expect(end).toMatchObject({ streamed: false, head: { form: 'text' } });
  expect(end.result).toEqual(Buffer.from([0xe9]));
});

test('data that looks like a ready-made event is sent as a ready-made event that contains the data', async () => {
  const call = request(raw, '/looks-ready-made');
  await call.ended;
  expect(framesOf(call)).toEqual([['m', 'data: data: x\ndata: \ndata: \n\n']]);
});

test('a request that cannot be forwarded fails by itself', async () => {
  const end = await request(raw, '/\u0100').ended;
  expect(end.error?.code).toBe('invalid_request');
});

test('an address without a server is reported with the address', async () => {
  const port = await freePort();
  const listener = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
  const away = serverRuntime(log, {
    url: `http://127.0.0.1:${port}/base`,
    watch: { readyEveryMs: 50, wellEveryMs: 60_000, answerMs: 5_000 },
  });
  away.start();
  await reached(away, 'ready');
  await new Promise((resolve) => listener.close(resolve));
  const end = await request(away, '/').ended;
  expect(end.error).toMatchObject({ code: 'upstream_unavailable' });
  expect(end.error?.message).toContain('connection refused');
  await away.close();
});
