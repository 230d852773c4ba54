// Contract 1: requests for apps that are web servers, their whole answers, and their errors.
import type { AnswerHead } from '@inference-proxy/contracts';
import { bytesOf, errorOf, textOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import { head, JSON_HEAD, SITE, SiteUnderTest, SSE } from '../../test/site-under-test.ts';

let site: SiteUnderTest;
let gateway: GatewayUnderTest;
beforeAll(async () => {
  site = await SiteUnderTest.start();
  gateway = site.gateway;
});
afterAll(() => gateway.stop());

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
    const run = await site.next();
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
      const run = await site.next();
      expect(run.request).toMatchObject({ method, target: path || '/' });
      await run.answers(JSON_HEAD, '{"n": 1.0}');
      expect(await answering).toMatchObject({ status: 200, text: '{"n": 1.0}' });
    }
  },
);

test('an answer to HEAD has the length of the omitted body', async () => {
  const answering = gateway.request(`${SITE}/file`, { method: 'HEAD' });
  const run = await site.next();
  expect(run.request.method).toBe('HEAD');
  await run.answers(head('binary', 'image/png', { headers: [['Content-Length', '1234']] }));
  expect(await answering).toMatchObject({ status: 200, text: '', headers: { 'content-length': '1234' } });
});

test.each([204, 304])('%d has no body, and no header describes a body', async (status) => {
  const answering = gateway.request(`${SITE}/file`, { method: 'GET', headers: { 'if-none-match': '"e"' } });
  const run = await site.next();
  await run.answers({ status, form: 'binary', headers: [['ETag', '"e"']] });
  const answer = await answering;
  expect(answer).toMatchObject({ status, text: '', headers: { etag: '"e"' } });
  expect(answer.headers).not.toHaveProperty('content-length');
  expect(answer.headers).not.toHaveProperty('transfer-encoding');
});

test('a failure before the head is an error with its real status', async () => {
  const answering = gateway.request(`${SITE}/x`, { method: 'GET' });
  const run = await site.next();
  await run.fails({ code: 'upstream_unavailable', message: 'The server refused the connection.' });
  const answer = await answering;
  expect(answer.status).toBe(502);
  expect(errorOf(answer)).toMatchObject({ code: 'upstream_unavailable', retryable: true });
  expect(JSON.parse(answer.text)).toMatchObject({ run_id: run.taken.runId, status: 'failed' });
});

test('`Prefer: wait` returns 202 if the server has not answered in time', async () => {
  const waiting = gateway.request(`${SITE}/slow`, { headers: { prefer: 'wait=0' } });
  const run = await site.next();
  expect(await waiting).toMatchObject({ status: 202, headers: { 'preference-applied': 'wait=0' } });
  await run.answers(JSON_HEAD, '1');
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
    const answering = site.get('/', origin === '' ? {} : { origin });
    const run = await site.next();
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
  const run = await site.next();
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
  const run = await site.next();
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
  const answering = site.get('/logged/a?x=1');
  const run = await site.next();
  await run.begins(SSE);
  await run.items(['one']);
  await run.stops(SSE);
  await textOf(await answering);
  const line = gateway.lines.find(({ msg, runId }) => msg === 'call' && runId === run.taken.runId);
  expect(line).toMatchObject({ project: PROJECT, app: 'site', function: 'logged/a', status: 200, items: 1 });
  expect(line).toHaveProperty('firstItemMs');
  const metrics = await gateway.operations.registry.metrics();
  expect(metrics).toMatch(/inference_proxy_calls_total{project="acme",app="site",form="stream",code="ok"} [1-9]/);
  expect(metrics).toMatch(/inference_proxy_calls_total{project="acme",app="site",form="sync",code="ok"} [1-9]/);
});

test('the list of apps marks custom runtimes', async () => {
  const { apps } = JSON.parse((await gateway.get(`/v4/${PROJECT}`)).text);
  expect(apps).toContainEqual(expect.objectContaining({ app: 'site', kind: 'server', functions: [] }));
});
