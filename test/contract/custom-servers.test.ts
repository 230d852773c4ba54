// Contract 1, "Custom runtimes": FastAPI under uvicorn, plain Node, a faulty server and a server behind a `url`, over the whole stack.
// A stack of its own, because the tests need the default size of bodies.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { EventReader } from '../client/event-reader.ts';
import { type Answer, bytesOf, errorOf, type RequestOptions, textOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { type Receiver, type Request, receiver } from '../receiver/receivers.ts';
import { obtainFastApi } from '../stack/fastapi.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

const SERVERS = join(projectRoot(), 'apps', 'worker', 'src', 'runtimes', 'testing', 'servers');
const BOARD = join(projectRoot(), 'examples', 'demo', 'board');
const SECRET = 'a secret of the caller';

let folder: string;
let elsewhere: Server;
let hook: Receiver & { requests: Request[] };
let stack: TestStack;
let caller: Caller;

/** Writes an app with a copy of these files and the entrypoint of its server. */
async function app(name: string, files: string, entrypoint: readonly string[], more = ''): Promise<void> {
  const place = join(folder, 'demo', name);
  await cp(files, place, { recursive: true, filter: (path) => !path.endsWith('__pycache__') });
  await writeFile(join(place, 'app.toml'), `[runtime.custom]\nentrypoint = ${JSON.stringify(entrypoint)}\n${more}`);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servers-'));
  const { python, env } = await obtainFastApi();
  const uvicorn = [python, '-m', 'uvicorn', 'main:app', '--port', '{port}'];
  const variables = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`);
  const node = [process.execPath, 'server.mjs'];
  await app(
    'fast',
    join(SERVERS, 'fastapi'),
    uvicorn,
    `readycheck_endpoint = "/health"\nhealthcheck_endpoint = "/health"\n[env]\n${variables.join('')}`,
  );
  await app('plain', join(SERVERS, 'node'), node, 'readycheck_endpoint = "/health"\n');
  await app('odd', join(SERVERS, 'raw'), node);
  await app('slow', join(SERVERS, 'raw'), node, '[scaling]\ntimeout = 0.5\n');
  await cp(BOARD, join(folder, 'demo', 'board'), { recursive: true });
  elsewhere = createServer(async (request, response) => {
    response.setHeader('content-type', 'text/plain').end(`${request.method} ${request.url} ${await textOf(request)}`);
  }).listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  const place = join(folder, 'demo', 'elsewhere');
  await mkdir(place);
  const { port } = elsewhere.address() as AddressInfo;
  await writeFile(join(place, 'app.toml'), `[runtime.custom]\nurl = "http://127.0.0.1:${port}/base"\n`);
  hook = await receiver(() => ({ status: 204 }));
  stack = await startTestStack({ apps: folder, env: { WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8', WEBHOOK_JITTER: '0' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  await Promise.all(['fast', 'plain', 'odd', 'slow', 'board', 'elsewhere'].map((name) => caller.ready(name)));
});
afterAll(async () => {
  await stack.stop();
  await hook.close();
  elsewhere.closeAllConnections();
  elsewhere.close();
  await rm(folder, { recursive: true, force: true });
});

const ask = (path: string, options: RequestOptions = {}): Promise<Answer> =>
  caller.request(`/v4/demo/${path}`, { method: 'GET', ...options });
const reach = (path: string, options: RequestOptions = {}): Promise<IncomingMessage> =>
  caller.open(`/v4/demo/${path}`, { method: 'GET', ...options });
const runOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string => String(headers['x-request-id']);

/** Returns the request of a run's delivery, without changes. */
const delivered = (runId: string): Promise<Request> =>
  until(() => hook.requests.find(({ headers }) => headers['x-request-id'] === runId));

describe('a request to a custom runtime', () => {
  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'reaches the server unchanged, with any body: %s',
    async (method) => {
      const body = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      const answer = await ask('fast/seen/a%2Fb/%F0%9F%A6%8A?x=1&async=false&x=%20&onDisconnect=continue', {
        method,
        body,
        headers: {
          'content-type': 'application/x-own; odd',
          'content-length': body.length,
          'x-webhook-secret': SECRET,
          'x-own': ['one', 'two'],
          prefer: 'return=minimal, wait=60',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        },
      });
      expect(answer.status).toBe(200);
      const seen = JSON.parse(answer.text);
      const headers = (name: string): string[] =>
        seen.headers.filter(([each]: [string]) => each === name).map(([, value]: [string, string]) => value);
      expect(seen).toMatchObject({ method, query: 'x=1&x=%20', body: body.toString('latin1') });
      expect(seen.path).toBe('/seen/a%2Fb/%F0%9F%A6%8A');
      expect(headers('content-type')).toEqual(['application/x-own; odd']);
      expect(headers('x-own')).toEqual(['one', 'two']);
      expect(headers('prefer')).toEqual(['return=minimal']);
      expect(headers('accept-encoding')).toEqual(['identity']);
      expect(headers('x-request-id')).toEqual([runOf(answer)]);
      expect(headers('traceparent')[0]).toContain('0af7651916cd43dd8448eb211c80319c');
      expect(headers('x-forwarded-for')).toEqual(['127.0.0.1']);
      expect(headers('x-forwarded-proto')).toEqual(['http']);
      expect(headers('x-forwarded-host')).toEqual([`127.0.0.1:${stack.port}`]);
      expect(headers('x-forwarded-prefix')).toEqual(['/v4/demo/fast']);
      expect(answer.text).not.toMatch(/authorization|bearer|secret/i);
    },
  );

  test('reaches a server behind a url, below the path of the url', async () => {
    const { text } = await ask('elsewhere/x?y=1', { method: 'POST', body: 'sent' });
    expect(text).toBe('POST /base/x?y=1 sent');
  });

  test('reaches the server at the largest size, and is 413 above that size', async () => {
    const largest = Buffer.alloc(8 * 1024 * 1024, 'x');
    const answer = await ask('plain/echo', { method: 'POST', body: JSON.stringify('x'.repeat(largest.length - 2)) });
    expect([answer.status, answer.text.length]).toEqual([200, largest.length]);
    const over = await ask('plain/echo', { method: 'POST', body: Buffer.concat([largest, Buffer.from('x')]) });
    expect([over.status, errorOf(over).code]).toEqual([413, 'payload_too_large']);
  });
});

describe('the answer of a custom runtime reaches the caller', () => {
  test.each([201, 404, 418, 500, 503])(
    'with its status and headers (%d), and the run has succeeded',
    async (status) => {
      const answer = await ask(`fast/status/${status}`);
      expect(answer).toMatchObject({ status, text: `{"so":${status}}` });
      expect(answer.headers).toMatchObject({
        'x-own': 'yes',
        'set-cookie': ['a=b'],
        'content-type': 'application/json',
      });
      expect(await caller.lookUp(runOf(answer))).toMatchObject({
        status: 'succeeded',
        function: `status/${status}`,
        status_code: status,
        content_type: 'application/json',
        result: { so: status },
      });
    },
  );

  test('byte for byte', async () => {
    const answer = await reach('fast/bytes');
    expect(answer.headers['content-length']).toBe('256');
    expect([...(await bytesOf(answer))]).toEqual(Array.from({ length: 256 }, (_, byte) => byte));
  });

  test('without a body if the server sends none', async () => {
    expect(await ask('odd/no-content')).toMatchObject({ status: 204, text: '', headers: { 'x-own': 'yes' } });
    expect(await ask('odd/not-modified')).toMatchObject({ status: 304, text: '', headers: { etag: '"a"' } });
  });

  test('as events with the server’s names and ids, whatever the caller accepts', async () => {
    const answer = await reach('fast/named', { headers: { accept: 'application/json' } });
    expect(answer.headers['content-type']).toMatch(/^text\/event-stream/);
    const text = await textOf(answer);
    expect(text).toContain('event: delta\nid: 7\nretry: 10\ndata: {"x": 1}\n\n');
    expect(text).toMatch(/data: two\ndata: lines\n\ndata: plain\n\n$/);
  });

  test('as lines of JSON, and as pieces of text', async () => {
    expect((await ask('fast/lines')).text).toBe('{"a": 1}\nnot json\n[1, 2]\n');
    const answer = await ask('fast/pieces');
    expect(answer.text).toBe('eins zwei\ndrü');
    expect(await caller.lookUp(runOf(answer))).toMatchObject({ items: 3, result: 'eins zwei\ndrü' });
  });

  test.each(['fast', 'plain'])('piece by piece, as the server sends the pieces: %s', async (name) => {
    const marks = join(stack.marksDir, name);
    await mkdir(marks);
    const answer = await reach(`${name}/step_by_step`, {
      method: 'POST',
      body: JSON.stringify({ folder: marks, n: 3 }),
    });
    const events = new EventReader(answer);
    for (const n of [0, 1, 2]) {
      expect(await events.next()).toBe(`data: ${n}`);
      await writeFile(join(marks, String(n)), '');
    }
    expect(await events.next()).toBeUndefined();
  });

  test('later for an asynchronous call, and again under its Idempotency-Key', async () => {
    const accepted = await ask('plain/add?async=true', { method: 'POST', body: '{"a":1}' });
    expect(accepted.status).toBe(202);
    expect(await caller.ended(runOf(accepted))).toMatchObject({ status: 'succeeded', result: 3, status_code: 200 });
    const keyed = () => ask('plain/add', { method: 'POST', body: '{"a":2}', headers: { 'idempotency-key': 'once' } });
    const first = await keyed();
    expect(await keyed()).toMatchObject({
      status: 200,
      text: '4',
      headers: { 'idempotency-replayed': 'true', 'x-request-id': runOf(first), 'content-type': 'application/json' },
    });
  });

  test('as numbered events to a reader that resumes the stream', async () => {
    const answer = await ask('plain/count?onDisconnect=continue', { method: 'POST', body: '{"n":3}' });
    const { events } = await caller.takeUp(runOf(answer), 1);
    expect(await events.rest()).toEqual(['id: 2\ndata: item 1', 'id: 3\ndata: item 2']);
  });

  test('from the example app board', async () => {
    const posted = await ask('board/notices', { method: 'POST', body: '{"text":"hello"}' });
    expect(posted).toMatchObject({ status: 201, text: '{"text":"hello"}' });
    const ticks = await reach('board/ticks');
    const events = new EventReader(ticks);
    expect(await events.next()).toBe('event: tick\nid: 1\ndata: {"n":1,"notices":1}');
    events.leave();
  });
});

describe('a webhook of a custom runtime carries the envelope', () => {
  const to = (path: string, options: RequestOptions = {}) =>
    ask(`${path}?webhookEndpoint=${encodeURIComponent(hook.url)}`, {
      ...options,
      headers: { 'x-webhook-secret': SECRET, ...options.headers },
    });

  test.each<[string, string, unknown, string]>([
    ['events', 'fast/named', expect.arrayContaining(['two\nlines', 'plain']), 'text/event-stream; charset=utf-8'],
    ['lines', 'fast/lines', [{ a: 1 }, 'not json', [1, 2]], 'application/x-ndjson'],
    ['text', 'fast/pieces', 'eins zwei\ndrü', 'text/plain; charset=utf-8'],
    ['JSON', 'fast/status/404', { so: 404 }, 'application/json'],
    [
      'bytes',
      'fast/bytes',
      Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('base64'),
      'application/octet-stream',
    ],
  ])('of %s', async (_, path, result, type) => {
    const answer = await to(path);
    const { headers, body } = await delivered(runOf(answer));
    const envelope = JSON.parse(body.toString());
    expect(envelope).toEqual({
      run_id: runOf(answer),
      status: 'succeeded',
      status_code: answer.status,
      content_type: type,
      result,
      run_time_ms: expect.any(Number),
      timestamp: expect.any(String),
    });
    const signed = `${runOf(answer)}.${headers['x-service-webhook-timestamp']}.${body}`;
    expect(headers['x-service-webhook-signature']).toBe(
      `v1,${createHmac('sha256', SECRET).update(signed).digest('hex')}`,
    );
    expect(await caller.lookUp(runOf(answer))).toMatchObject({
      result,
      status_code: answer.status,
      content_type: type,
    });
  });

  test('of a failure', async () => {
    const answer = await to('odd/closes-mid-body');
    const { body } = await delivered(runOf(answer));
    expect(JSON.parse(body.toString())).toMatchObject({ status: 'failed', error: { code: 'upstream_reset' } });
  });
});

describe('a faulty server is reported', () => {
  test.each([
    ['closes-at-once', 'upstream_unavailable'],
    ['resets-at-once', 'upstream_unavailable'],
    ['closes-mid-head', 'upstream_reset'],
    ['closes-mid-body', 'upstream_reset'],
    ['resets-mid-body', 'upstream_reset'],
    ['length-too-long', 'upstream_reset'],
    ['length-too-short', 'upstream_reset'],
    ['two-lengths', 'upstream_reset'],
    ['garbage', 'upstream_reset'],
    ['large-head', 'upstream_reset'],
    ['switches-protocols', 'upstream_reset'],
  ])('by a 502 if the caller has received nothing: %s', async (path, code) => {
    const answer = await ask(`odd/${path}`);
    expect([answer.status, errorOf(answer).code]).toEqual([502, code]);
    expect(JSON.parse(answer.text)).toMatchObject({ run_id: runOf(answer), status: 'failed' });
  });

  test.each(['closes-mid-chunk', 'closes-between-chunks', 'resets-mid-stream', 'ends-mid-event'])(
    'by the last event if the stream has begun: %s',
    async (path) => {
      const answer = await reach(`odd/${path}`);
      expect(answer.statusCode).toBe(200);
      const events = await new EventReader(answer).rest();
      expect(events[0]).toBe('data: one');
      expect(events.at(-1)).toMatch(/^event: error\ndata: {"run_id":".*"code":"upstream_reset"/);
      expect(events).toHaveLength(2);
    },
  );

  test('by the time limit if the server sends nothing or never ends', async () => {
    for (const path of ['never-answers', 'never-ends-its-head', 'never-ends-its-body']) {
      const answer = await ask(`slow/${path}`);
      expect([path, answer.status, errorOf(answer).code]).toEqual([path, 504, 'timed_out']);
    }
  });

  test('by the output limit if the body is endless', async () => {
    const answer = await ask('odd/large-length');
    expect([answer.status, errorOf(answer).code]).toEqual([500, 'output_too_large']);
  });

  test('by a 502 if the server dies, and a new server answers the next call', async () => {
    const answer = await ask('plain/exits', { method: 'POST', body: '{}' });
    expect(answer.status).toBe(502);
    expect(['replica_crashed', 'upstream_reset', 'upstream_unavailable']).toContain(errorOf(answer).code);
    expect(await ask('plain/add', { method: 'POST', body: '{"a":1}' })).toMatchObject({ status: 200, text: '3' });
  });
});

describe('a run is cancelled by closing the connection to the server', () => {
  const cleanups = (): number => stack.logs().split('cleaned up').length - 1;

  test.each(['fast', 'plain'])('if the caller disconnects: %s', async (name) => {
    const before = cleanups();
    const answer = await reach(`${name}/sleeper`, { method: 'POST', body: '{}' });
    const events = new EventReader(answer);
    expect(await events.next()).toBe('data: asleep');
    events.leave();
    expect(await caller.ended(runOf(answer))).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
    await until(() => cleanups() > before);
  });

  test('if a client cancels the run, and the reader gets the error', async () => {
    const answer = await reach('plain/sleeper', { method: 'POST', body: '{}' });
    const events = new EventReader(answer);
    await events.next();
    expect((await caller.cancel(runOf(answer))).status).toBe(202);
    expect(await events.next()).toMatch(/^event: error\ndata: .*"code":"cancelled"/);
    expect(await events.next()).toBeUndefined();
  });
});

test('a websocket to a custom runtime is rejected', async () => {
  const answer = await ask('fast/ws', { headers: { connection: 'upgrade', upgrade: 'websocket' } });
  expect([answer.status, errorOf(answer).code]).toEqual([501, 'not_implemented']);
});

test('a server behind a url that accepts no connection is unavailable', async () => {
  elsewhere.closeAllConnections();
  elsewhere.close();
  const answer = await ask('elsewhere/x');
  // If the worker has noticed the closed server first, the call is rejected without an attempt.
  expect(['502 upstream_unavailable', '503 app_failed_to_start']).toContain(`${answer.status} ${errorOf(answer).code}`);
});
