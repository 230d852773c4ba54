import type { IncomingMessage } from 'node:http';
import { type Answer, textOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';
import { app } from '../../test/played-worker.ts';
import { corsOrigins } from './cors.ts';

const PAGE = 'https://app.example.com';
const CALL = `/v4/${PROJECT}/chat/run`;

let gateway: GatewayUnderTest;
const withOrigins = (env: Record<string, string>): void => {
  beforeAll(async () => {
    gateway = await GatewayUnderTest.start(env);
  });
  afterAll(() => gateway.stop());
};

const preflight = (origin: string, path = CALL): Promise<Answer> =>
  gateway.request(path, {
    method: 'OPTIONS',
    headers: {
      origin,
      authorization: '',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,x-of-a-custom-runtime',
    },
  });

/** Returns an answer of every kind: the gateway writes each kind in another way. */
async function answers(origin: string): Promise<[string, number, IncomingMessage['headers']][]> {
  const headers = { origin };
  const all: [string, number, IncomingMessage['headers']][] = [];
  const add = (what: string, { status, headers: got }: Answer): void => void all.push([what, status, got]);
  const calling = gateway.call({ headers });
  await (await gateway.worker.next()).returns('1');
  add('a call', await calling);
  for (const encoding of ['identity', 'gzip']) {
    const streaming = gateway.stream({ ...headers, 'accept-encoding': encoding });
    const run = await gateway.worker.next();
    await run.items(['a']);
    await run.stops();
    const stream = await streaming;
    await textOf(stream);
    all.push([`a stream, ${encoding}`, stream.statusCode ?? 0, stream.headers]);
  }
  const failing = gateway.call({ headers });
  await (await gateway.worker.next()).fails({ code: 'function_error', message: 'no' });
  add('a failure', await failing);
  add('202', await gateway.call({ query: '?async=true', headers }));
  add('a look-up', await gateway.get(`/v4/${PROJECT}`, headers));
  add('HEAD', await gateway.request(`/v4/${PROJECT}`, { method: 'HEAD', headers }));
  add('no token', await gateway.call({ headers: { ...headers, authorization: '' } }));
  add(
    'another project',
    await gateway.call({ headers: { ...headers, authorization: `Bearer ${token({ project_id: 'x' })}` } }),
  );
  add('no route', await gateway.get('/nothing', headers));
  add('another method', await gateway.request(CALL, { method: 'DELETE', headers }));
  add('half an escape', await gateway.get('/v4/%f', headers));
  add('no JSON', await gateway.call({ body: '{', headers }));
  add('a websocket', await gateway.get('/', { ...headers, connection: 'Upgrade', upgrade: 'websocket' }));
  add('health', await gateway.get('/healthz', headers));
  return all;
}
const STATUSES = [200, 200, 200, 500, 202, 200, 200, 401, 403, 404, 405, 400, 400, 501, 200];

/** Returns the head of the answer to a request that Node's parser rejects. No response object exists for this request. */
const unparsed = (origin: string): Promise<string> =>
  answerTo(`GET / HTTP/1.1\r\nHost: a\r\nOrigin: ${origin}\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`);

/** Sends bytes. Returns the gateway's answer when the gateway has closed the connection. */
async function answerTo(bytes: string): Promise<string> {
  const socket = gateway.socket();
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes);
  await closed;
  return text;
}

describe('with all origins allowed', () => {
  withOrigins({ CORS_ORIGINS: '*' });

  test('a page can read that its head is too large', async () => {
    const head = await unparsed(PAGE);
    expect(head).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    expect(head).toContain('\r\naccess-control-allow-origin: *\r\n');
    expect(head).toMatch(/\r\naccess-control-expose-headers: X-Request-Id,/);
    expect(head).toMatch(/\r\nx-request-id: /);
  });

  test('every page may read every answer', async () => {
    const all = await answers(PAGE);
    expect(all.map(([, status]) => status)).toEqual(STATUSES);
    for (const [what, , headers] of all) {
      expect([what, headers['access-control-allow-origin']]).toEqual([what, '*']);
      expect(headers['access-control-expose-headers']).toMatch(/^X-Request-Id, Idempotency-Replayed\b/);
      expect(headers['access-control-allow-credentials']).toBeUndefined();
      expect(headers.vary ?? '').not.toContain('Origin');
    }
  });

  test('a preflight is answered without a token, for any path, method and header', async () => {
    for (const path of [CALL, '/v4/other/chat/run', '/nothing']) {
      const { status, headers, text } = await preflight('null', path);
      expect([status, text]).toEqual([204, '']);
      expect(headers['access-control-allow-origin']).toBe('*');
      expect(headers['access-control-allow-methods']?.split(', ')).toEqual(
        expect.arrayContaining(['GET', 'POST', 'DELETE']),
      );
      expect(headers['access-control-allow-headers']).toBe('authorization,content-type,x-of-a-custom-runtime');
      expect(headers['access-control-max-age']).toBe('7200');
      expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test('an answer to a request without an origin has no CORS headers', async () => {
    const { headers } = await gateway.get('/healthz');
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('OPTIONS without a preflight is an ordinary method', async () => {
    const answer = await gateway.request(CALL, { method: 'OPTIONS', headers: { origin: PAGE } });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
  });
});

describe('with some origins allowed', () => {
  withOrigins({ CORS_ORIGINS: `https://other.example.com, ${PAGE}` });

  test('pages of an allowed origin may read every answer, and caches keep answers to other origins apart', async () => {
    const all = await answers(PAGE);
    expect(all.map(([, status]) => status)).toEqual(STATUSES);
    for (const [what, , headers] of all) {
      expect([what, headers['access-control-allow-origin']]).toEqual([what, PAGE]);
      expect([what, headers.vary]).toEqual([what, what.startsWith('a stream') ? 'Origin, Accept-Encoding' : 'Origin']);
    }
    expect(await preflight(PAGE)).toMatchObject({
      status: 204,
      headers: { 'access-control-allow-origin': PAGE, vary: 'Origin' },
    });
  });

  test.each([
    'https://evil.example.com',
    'http://app.example.com',
    'https://app.example.com:444',
    'https://app.example.com.evil.com',
    'https://APP.example.com',
    'https://app.example.com/',
    'null',
    '*',
    '',
  ])('the origin %j is not allowed', async (origin) => {
    for (const answer of [await gateway.get(`/v4/${PROJECT}`, { origin }), await preflight(origin)]) {
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      expect(answer.headers.vary).toBe('Origin');
    }
    expect((await preflight(origin)).status).toBe(401);
  });

  test('the answer to an unparsed request has CORS headers for allowed origins only', async () => {
    const theirs = await unparsed(PAGE);
    expect(theirs).toContain(`\r\naccess-control-allow-origin: ${PAGE}\r\n`);
    expect(theirs).toContain('\r\nvary: Origin\r\n');
    for (const origin of ['https://evil.example.com', `${PAGE}.evil.com`, '']) {
      const others = await unparsed(origin);
      expect(others).toMatch(/^HTTP\/1.1 400 /);
      expect(others).not.toContain('access-control');
      expect(others).toContain('\r\nvary: Origin\r\n');
    }
  });

  test('the gateway answers a malformed request at once, however many blanks its origin has', async () => {
    // A regular expression took cubic time here: 6,000 blanks stopped the gateway for half a minute.
    for (const blank of [' ', '\t']) {
      const answer = await answerTo(`GET / HTTP/1.1\r\nHost: a\r\nOrigin:${blank.repeat(15_000)}\0`);
      expect(answer).toMatch(/^HTTP\/1.1 400 /);
      expect(answer).not.toContain('access-control');
    }
    const theirs = await answerTo(
      `GET / HTTP/1.1\r\nHost: a\r\norigin:\t ${PAGE} ${' '.repeat(9000)}\r\nX: \0\r\n\r\n`,
    );
    expect(theirs).toContain(`\r\naccess-control-allow-origin: ${PAGE}\r\n`);
  });

  test('an answer to a request without an origin has `Vary: Origin`', async () => {
    expect((await gateway.get('/healthz')).headers.vary).toBe('Origin');
  });
});

describe('without allowed origins', () => {
  withOrigins({});

  test('a custom runtime decides itself which pages may read its answers', async () => {
    await gateway.worker.start(app(), app({ app: 'site', kind: 'server', functions: [] }));
    while (!(await gateway.store.registry.apps(PROJECT)).has('site'))
      await new Promise((resolve) => setImmediate(resolve));
    const answering = gateway.get(`/v4/${PROJECT}/site/`, { origin: PAGE });
    const run = await gateway.worker.next('site');
    const open = [['Access-Control-Allow-Origin', '*']] as const;
    await run.answers({ status: 200, form: 'json', headers: [['Content-Type', 'application/json'], ...open] }, '1');
    expect((await answering).headers['access-control-allow-origin']).toBe('*');
  });

  test('the answer to an unparsed request has no CORS headers', async () => {
    expect(await unparsed(PAGE)).not.toMatch(/access-control|vary/i);
  });

  test('answers have no CORS headers, and a preflight is an ordinary method', async () => {
    expect((await preflight(PAGE)).status).toBe(401);
    for (const [, , headers] of await answers(PAGE)) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      expect(headers.vary ?? '').not.toContain('Origin');
    }
  });
});

describe('the setting CORS_ORIGINS', () => {
  test.each([
    'app.example.com',
    'https://app.example.com/',
    'https://app.example.com/page',
    'https://*.example.com/x',
    'null',
    'https://a.example.com:443',
  ])('%j is not an origin', (word) => {
    expect(() => corsOrigins([word])).toThrow(`got ${word}`);
  });

  test('a `*` among origins allows all origins', () => {
    expect(corsOrigins([PAGE, '*'])).toBe('*');
    expect(corsOrigins([PAGE, 'http://localhost:3000'])).toEqual(new Set([PAGE, 'http://localhost:3000']));
  });
});
