import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AnswerHead } from '@inference-proxy/contracts';
import { bytesOf, errorOf, textOf } from '@inference-proxy/test/client';
import { EVERY_STREAM, opening } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';
import { app, type PlayedRun } from '../../test/played-worker.ts';

const SITE = `/v4/${PROJECT}/site`;
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ CORS_ORIGINS: 'https://page.example' });
  const server = { kind: 'server', functions: [] } as const;
  await gateway.worker.start(
    app(),
    app({ app: 'site', ...server }),
    app({ app: 'trusting', ...server, forwardAuth: true }),
    app({ app: 'down', ...server, state: 'broken', error: { code: 'app_failed_to_start', message: 'port taken' } }),
  );
  // Announcements arrive with a delay.
  while ((await gateway.store.apps(PROJECT)).size < 4) await new Promise((resolve) => setImmediate(resolve));
});
afterAll(() => gateway.stop());

const head = (form: AnswerHead['form'], type: string, more: Partial<AnswerHead> = {}): AnswerHead => ({
  status: 200,
  form,
  ...more,
  headers: [['Content-Type', type], ...(more.headers ?? [])],
});
const SSE = head('sse', 'text/event-stream');
const JSON_HEAD = head('json', 'application/json');

const get = (path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> =>
  gateway.open(SITE + path, { method: 'GET', headers });
const next = (): Promise<PlayedRun> => gateway.worker.next('site');
const lookUp = async (runId: unknown): Promise<Record<string, unknown>> =>
  JSON.parse((await gateway.get(`/v4/${PROJECT}/runs/${runId}`)).text);

test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'QUERY'])(
  '%s reaches the server with path, query, headers and body unchanged, and the answer reaches the caller',
  async (method) => {
    const body = method === 'GET' || method === 'TRACE' ? undefined : Buffer.from([0, 255, 10, 123]);
    const answering = gateway.open(`${SITE}/a%2Fb//c?x=1&async=false&x=%20`, {
      method,
      ...(body && { body }),
      headers: {
        // Node's client omits the header if the method usually has no body.
        ...(body && { 'content-length': body.length }),
        'x-own': 'caf\xe9',
        'content-type': 'application/x-own',
        'x-webhook-secret': 's',
      },
    });
    const run = await next();
    const { request } = run;
    expect(request).toMatchObject({ method, target: '/a%2Fb//c?x=1&x=%20', body: body ?? Buffer.alloc(0) });
    expect(run.taken.fn).toBe('a%2Fb//c');
    expect(request.headers).toEqual(
      expect.arrayContaining([
        ['x-own', 'caf\xe9'],
        ['content-type', 'application/x-own'],
        ['X-Forwarded-For', '127.0.0.1'],
        ['X-Forwarded-Prefix', SITE],
      ]),
    );
    expect(JSON.stringify(request.headers)).not.toMatch(/bearer|secret/i);
    await run.answers(
      head('binary', 'image/png', {
        status: 418,
        headers: [
          ['Set-Cookie', 'a=1'],
          ['Set-Cookie', 'b=2'],
          ['X-Own', 'caf\xe9'],
          ['Date', 'Thu, 01 Jan 1970 00:00:00 GMT'],
          ['X-Request-Id', 'theirs'],
        ],
      }),
      Buffer.from([137, 80, 0, 10]),
    );
    const answer = await answering;
    expect(answer.statusCode).toBe(418);
    expect(answer.headers).toMatchObject({
      'content-type': 'image/png',
      'content-length': '4',
      'set-cookie': ['a=1', 'b=2'],
      'x-own': 'caf\xe9',
      date: 'Thu, 01 Jan 1970 00:00:00 GMT',
      'x-request-id': run.taken.runId,
    });
    expect(answer.headers.server).toBeUndefined();
    expect([...(await bytesOf(answer))]).toEqual([137, 80, 0, 10]);
  },
);

test.each(['', '/', '/models', '/v1/chat/completions', '/v1/models', '/runs', '/_private', `/${'x'.repeat(4000)}`])(
  'the path %j reaches the server, although it may look like a route of the gateway',
  async (path) => {
    for (const method of ['GET', 'POST']) {
      const answering = gateway.request(SITE + path, { method });
      const run = await next();
      expect(run.request).toMatchObject({ method, target: path || '/' });
      await run.answers(JSON_HEAD, '{"n": 1.0}');
      expect(await answering).toMatchObject({ status: 200, text: '{"n": 1.0}' });
    }
  },
);

test('an answer to HEAD has the length of the omitted body', async () => {
  const answering = gateway.request(`${SITE}/file`, { method: 'HEAD' });
  const run = await next();
  expect(run.request.method).toBe('HEAD');
  await run.answers(head('binary', 'image/png', { headers: [['Content-Length', '1234']] }));
  expect(await answering).toMatchObject({ status: 200, text: '', headers: { 'content-length': '1234' } });
});

test.each([204, 304])('%d has no body, and no header describes a body', async (status) => {
  const answering = gateway.request(`${SITE}/file`, { method: 'GET', headers: { 'if-none-match': '"e"' } });
  const run = await next();
  await run.answers({ status, form: 'binary', headers: [['ETag', '"e"']] });
  const answer = await answering;
  expect(answer).toMatchObject({ status, text: '', headers: { etag: '"e"' } });
  expect(answer.headers).not.toHaveProperty('content-length');
  expect(answer.headers).not.toHaveProperty('transfer-encoding');
});

test('the head of a stream arrives before its first item, and events keep their names and ids', async () => {
  const answering = get('/events', { accept: 'application/json' });
  const run = await next();
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
  const lines = get('/lines');
  const one = await next();
  await one.begins(head('ndjson', 'application/x-ndjson'));
  await one.items(['{"n":1}', '{"n":2.0}'], 'j');
  await one.items(['no json']);
  await one.stops(head('ndjson', 'application/x-ndjson'));
  expect(await textOf(await lines)).toBe('{"n":1}\n{"n":2.0}\nno json\n');
  const text = get('/text');
  const other = await next();
  await other.begins(head('chunks', 'text/plain'));
  await other.items(['one ', 'two']);
  await other.items(['\nthree\n'], 'm');
  await other.stops(head('chunks', 'text/plain'));
  expect(await textOf(await text)).toBe('one two\nthree\n');
  expect(await lookUp(other.taken.runId)).toMatchObject({ result: 'one two\nthree\n', content_type: 'text/plain' });
});

test('a failure before the head is an error with its real status', async () => {
  const answering = gateway.request(`${SITE}/x`, { method: 'GET' });
  const run = await next();
  await run.fails({ code: 'upstream_unavailable', message: 'The server refused the connection.' });
  const answer = await answering;
  expect(answer.status).toBe(502);
  expect(errorOf(answer)).toMatchObject({ code: 'upstream_unavailable', retryable: true });
  expect(JSON.parse(answer.text)).toMatchObject({ run_id: run.taken.runId, status: 'failed' });
});

test.each([
  [
    'sse',
    'text/event-stream',
    /^data: one\n\nevent: error\ndata: {"run_id":".*","error":{"code":"upstream_reset",.*}}\n\n$/,
  ],
  ['ndjson', 'application/x-ndjson', /^one\n{"run_id":".*","error":{"code":"upstream_reset",.*}}\n$/],
] as const)('a stream that breaks off never ends silently: %s', async (form, type, text) => {
  const answering = get('/broken');
  const run = await next();
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
    const run = await next();
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
  const run = await next();
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
    const run = await next();
    await run.begins(head(form, 'text/plain'));
    await once(socket, 'data');
    const cancelled = gateway.worker.cancelled();
    socket.end();
    expect(await cancelled).toBe(run.taken.runId);
    await run.fails({ code: 'cancelled', message: 'no reader' }, 'cancelled');
  },
);

test('a slow reader causes backpressure, and gets every item when it reads again', async () => {
  const answering = get('/lines');
  const run = await next();
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

test('a call with `async=true` is answered at once, and the look-up has status, content type and body', async () => {
  const answer = await gateway.request(`${SITE}/report?async=true`, { body: 'x' });
  const run = await next();
  expect(answer).toMatchObject({ status: 202, headers: { location: `/v4/${PROJECT}/runs/${run.taken.runId}` } });
  await run.answers(head('json', 'application/json', { status: 201 }), '{"n": 1.0}');
  expect((await gateway.get(`/v4/${PROJECT}/runs/${run.taken.runId}`)).text).toMatch(
    /"function":"report","status":"succeeded".*"status_code":201,"content_type":"application\/json".*"result":{"n": 1\.0}}$/,
  );
  const { runs } = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs?app=site&function=report`)).text);
  expect(runs).toMatchObject([{ run_id: run.taken.runId, function: 'report', status_code: 201 }]);
});

test.each([
  ['text', 'text/plain', 'one\ntwo', 'one\ntwo', 'data: one\ndata: two\n\n'],
  ['binary', 'image/png', Buffer.from([0, 255]), 'AP8=', 'data: AP8=\n\n'],
  ['json', 'application/json', '{\n"n": 1.0\n}', { n: 1 }, 'data: {\ndata: "n": 1.0\ndata: }\n\n'],
] as const)(
  'look-up and resume return a kept answer in the service’s own form: %s',
  async (form, type, body, result, events) => {
    const { headers } = await gateway.request(`${SITE}/kept?onDisconnect=continue&async=true`);
    const runId = headers['x-request-id'];
    await (await next()).answers(head(form, type), body);
    expect(await lookUp(runId)).toMatchObject({ result, status_code: 200, content_type: type });
    expect((await gateway.get(`/v4/${PROJECT}/runs/${runId}/stream`)).text).toBe(`${opening(0)}id: 1\n${events}`);
  },
);

test('a server’s stream can be resumed in the service’s own form, with numbers', async () => {
  const answering = get('/events?onDisconnect=continue');
  const run = await next();
  await run.begins(SSE);
  await run.items(['one']);
  await run.items(['event: tick\nid: theirs\ndata: two\n\n'], 'm');
  await run.stops(SSE);
  await textOf(await answering);
  const { text } = await gateway.get(`/v4/${PROJECT}/runs/${run.taken.runId}/stream`);
  expect(text).toBe(`${opening(0)}id: 1\ndata: one\n\nid: 2\nevent: tick\ndata: two\n\n`);
});

test('`Prefer: wait` returns 202 if the server has not answered in time', async () => {
  const waiting = gateway.request(`${SITE}/slow`, { headers: { prefer: 'wait=0' } });
  const run = await next();
  expect(await waiting).toMatchObject({ status: 202, headers: { 'preference-applied': 'wait=0' } });
  await run.answers(JSON_HEAD, '1');
});

test('a repeated request under a key gets the kept answer, a stream from its start; another request is rejected', async () => {
  const keyed = (path: string, body: string) =>
    gateway.request(`${SITE}${path}`, { body, headers: { 'idempotency-key': 'k', 'content-type': 'text/plain' } });
  const first = keyed('/pay?x=1&onDisconnect=9', 'body');
  const run = await next();
  await run.begins(head('sse', 'text/event-stream', { status: 201 }));
  await run.items(['one']);
  await run.stops(head('sse', 'text/event-stream', { status: 201 }));
  await first;
  expect(await keyed('/pay?x=1&onDisconnect=9', 'body')).toMatchObject({
    status: 201,
    text: 'data: one\n\n',
    headers: { 'idempotency-replayed': 'true', 'x-request-id': run.taken.runId },
  });
  for (const [path, body] of [
    ['/pay?x=2', 'body'],
    ['/pay?x=1', 'other'],
  ] as const) {
    expect(errorOf(await keyed(path, body)).code).toBe('idempotency_conflict');
  }
});

test('a server with `forward_auth` receives the caller’s token', async () => {
  const answering = gateway.get(`/v4/${PROJECT}/trusting/x`);
  const run = await gateway.worker.next('trusting');
  expect(run.request.headers).toContainEqual(['authorization', expect.stringMatching(/^Bearer ./)]);
  await run.answers(JSON_HEAD, '1');
  await answering;
});

test.each([
  ['another origin', 'https://evil.example'],
  ['no origin', ''],
])('with CORS_ORIGINS, no header of the server lets a page of %s read the answer', async (_, origin) => {
  const open: AnswerHead['headers'] = [
    ['Access-Control-Allow-Origin', '*'],
    ['access-control-allow-credentials', 'true'],
    ['Access-Control-Expose-Headers', 'X-Own'],
    ['Access-Control-Allow-Private-Network', 'true'],
    ['X-Own', 'kept'],
  ];
  for (const form of [SSE, JSON_HEAD]) {
    const answering = get('/', origin === '' ? {} : { origin });
    const run = await next();
    const given = { ...form, headers: [...form.headers, ...open] };
    if (form === SSE) {
      await run.begins(given);
      await run.stops(given);
    } else await run.answers(given, '{}');
    const { headers } = await answering;
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(headers).toMatchObject({ vary: 'Origin', 'x-own': 'kept' });
  }
});

test('a page of an allowed origin may read the answer, whatever the server’s CORS headers say', async () => {
  const answering = gateway.get(`${SITE}/x`, { origin: 'https://page.example' });
  const run = await next();
  const headers = [
    ['Access-Control-Allow-Origin', '*'],
    ['Access-Control-Expose-Headers', 'X-Own'],
    ['Vary', 'Accept'],
  ] as const;
  await run.answers(head('json', 'application/json', { headers }), '1');
  const answer = await answering;
  expect(answer.headers).toMatchObject({
    'access-control-allow-origin': 'https://page.example',
    vary: 'Origin, Accept',
  });
  expect(answer.headers['access-control-expose-headers']).toMatch(/^X-Request-Id, .*, X-Own$/);
});

test('the gateway does not check the names in a server’s query', async () => {
  const answering = gateway.get(`${SITE}/x?asinc=true&event=full&afer=1`);
  const run = await next();
  expect(run.request.target).toBe('/x?asinc=true&event=full&afer=1');
  await run.answers(JSON_HEAD, '1');
  expect((await answering).status).toBe(200);
});

test('an unauthorized caller learns nothing about the server', async () => {
  for (const path of ['', '/x', '/v1/models']) {
    const { status } = await gateway.request(SITE + path, { method: 'GET', headers: { authorization: '' } });
    expect(status).toBe(401);
  }
});

test('a body over the limit and a websocket are rejected', async () => {
  const large = await gateway.request(`${SITE}/x`, { body: '', headers: { 'content-length': String(9 * 2 ** 20) } });
  expect(large.status).toBe(413);
  const upgrade = await gateway.get(`${SITE}/x`, { connection: 'upgrade', upgrade: 'websocket' });
  expect(upgrade.status).toBe(501);
});

test('a call to a broken server returns the reason, and a deeper path of other apps returns 404', async () => {
  const down = await gateway.get(`/v4/${PROJECT}/down/x`);
  expect([down.status, errorOf(down)]).toEqual([503, expect.objectContaining({ code: 'app_failed_to_start' })]);
  for (const path of ['chat/run/deeper', 'nothing/at/all', 'runs/x/y']) {
    expect((await gateway.get(`/v4/${PROJECT}/${path}`)).status).toBe(404);
  }
});

test.each(['GET', 'POST', 'DELETE'])('a path of an unknown app returns 404 with %s', async (method) => {
  for (const path of ['stie', 'stie/page', 'stie/a/b']) {
    const answer = await gateway.request(`/v4/${PROJECT}/${path}`, { method });
    expect([answer.status, errorOf(answer)]).toEqual([
      404,
      expect.objectContaining({ code: 'not_found', message: 'There is no app `stie` in this project.' }),
    ]);
  }
});

test('a forwarded call logs one line, and counts as a stream if its answer is a stream', async () => {
  const answering = get('/told/a?x=1');
  const run = await next();
  await run.begins(SSE);
  await run.items(['one']);
  await run.stops(SSE);
  await textOf(await answering);
  const line = gateway.lines.find(({ msg, runId }) => msg === 'call' && runId === run.taken.runId);
  expect(line).toMatchObject({ project: PROJECT, app: 'site', function: 'told/a', status: 200, items: 1 });
  expect(line).toHaveProperty('firstItemMs');
  const metrics = await gateway.operations.registry.metrics();
  expect(metrics).toMatch(/inference_proxy_calls_total{project="acme",app="site",form="stream",code="ok"} [1-9]/);
  expect(metrics).toMatch(/inference_proxy_calls_total{project="acme",app="site",form="sync",code="ok"} [1-9]/);
});

test('the list of apps marks custom runtimes', async () => {
  const { apps } = JSON.parse((await gateway.get(`/v4/${PROJECT}`)).text);
  expect(apps).toContainEqual(expect.objectContaining({ app: 'site', kind: 'server', functions: [] }));
});
