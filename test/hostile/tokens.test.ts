// Contract 1: the gateway rejects an unauthorized caller before it reads the body. The rejected requests never send the announced body.
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { answerTo, codeOf, RawConnection } from './raw-connection.ts';

const HOUR_AHEAD = Math.floor(Date.now() / 1000) + 3600;
const CLAIMS = { sub: 'tester', project_id: 'demo', exp: HOUR_AHEAD };
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function signed(header: object, claims: object, signature: (text: string) => Buffer): string {
  const text = `${encode({ typ: 'JWT', ...header })}.${encode(claims)}`;
  return `${text}.${signature(text).toString('base64url')}`;
}
const hs256 = (key: string, claims: object = CLAIMS, header: object = {}): string =>
  signed({ alg: 'HS256', ...header }, claims, (text) => createHmac('sha256', key).update(text).digest());
const rs256 = (key: KeyObject, header: object = {}): string =>
  signed({ alg: 'RS256', ...header }, CLAIMS, (text) => sign('sha256', Buffer.from(text), key));

const CALL = 'POST /v4/demo/streams/value';
/** Returns a request with these headers that never sends its body. */
const bodiless = (headers: string[], line = CALL): string =>
  [`${line} HTTP/1.1`, 'Host: x', ...headers, 'Content-Type: application/json', 'Content-Length: 1000', '', ''].join(
    '\r\n',
  );

describe('with a secret', () => {
  let stack: TestStack;
  let secret: string;
  beforeAll(async () => {
    stack = await startTestStack({ env: { WORKER_APPS: 'demo/streams' } });
    secret = stack.jwtSecret;
    await new Caller(stack.port, secret).ready('streams');
  });
  afterAll(() => stack.stop());

  const NONE = 'Bearer';
  const WRONG = 'Bearer error="invalid_token"';
  const good = (): string => hs256(secret);

  test.each<[string, string, () => string[]]>([
    ['no token', NONE, () => []],
    ['an empty header', NONE, () => ['Authorization:']],
    ['only the scheme', NONE, () => ['Authorization: Bearer']],
    ['another scheme', NONE, () => [`Authorization: Basic ${good()}`]],
    ['the token without a scheme', NONE, () => [`Authorization: ${good()}`]],
    ['another header', NONE, () => [`X-Authorization: Bearer ${good()}`, `Proxy-Authorization: Bearer ${good()}`]],
    ['a cookie', NONE, () => [`Cookie: access_token=${good()}; Authorization=Bearer ${good()}`]],
    [
      'two headers with good tokens',
      WRONG,
      () => [`Authorization: Bearer ${good()}`, `Authorization: Bearer ${good()}`],
    ],
    ['a good token before a bad token', WRONG, () => [`Authorization: Bearer ${good()}`, 'Authorization: Bearer x']],
    ['two tokens in one header', WRONG, () => [`Authorization: Bearer ${good()}, Bearer ${good()}`]],
    ['parameters after the token', WRONG, () => [`Authorization: Bearer ${good()}; charset=utf-8`]],
    ['quotes around the token', WRONG, () => [`Authorization: Bearer "${good()}"`]],
    ['text that is not a token', WRONG, () => ['Authorization: Bearer null']],
    [
      'an expired token',
      WRONG,
      () => [`Authorization: Bearer ${hs256(secret, { ...CLAIMS, exp: HOUR_AHEAD - 7200 })}`],
    ],
    ['a token without exp', WRONG, () => [`Authorization: Bearer ${hs256(secret, { project_id: 'demo' })}`]],
    [
      'a token that is not valid yet',
      WRONG,
      () => [`Authorization: Bearer ${hs256(secret, { ...CLAIMS, nbf: HOUR_AHEAD })}`],
    ],
    [
      'a token of another secret',
      WRONG,
      () => [`Authorization: Bearer ${hs256('another secret of thirty-two letters')}`],
    ],
    ['an unsigned token', WRONG, () => [`Authorization: Bearer ${encode({ alg: 'none' })}.${encode(CLAIMS)}.`]],
    ['a padded token', WRONG, () => [`Authorization: Bearer ${good()}=`]],
    ['a huge token', WRONG, () => [`Authorization: Bearer ${hs256(secret, { ...CLAIMS, more: 'x'.repeat(9000) })}`]],
  ])('%s is 401', async (_, challenge, headers) => {
    const answer = await answerTo(stack.port, bodiless(headers()));
    expect([answer.status, codeOf(answer)]).toEqual([401, 'unauthorized']);
    expect(answer.headers['www-authenticate']).toBe(challenge);
    expect(answer.headers.connection).toBe('close');
  });

  test('a token in the query or the body is 401', async () => {
    const line = `${CALL}?access_token=${good()}&token=${good()}&authorization=Bearer%20${good()}`;
    expect((await answerTo(stack.port, bodiless([], line))).status).toBe(401);
    const body = `access_token=${good()}`;
    const form = `${CALL} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
    expect((await answerTo(stack.port, form)).status).toBe(401);
  });

  test.each<[string, () => string]>([
    ['the scheme in another case', () => `Authorization: bEARER ${good()}`],
    ['spaces around the token', () => `Authorization:   Bearer   ${good()}  \t`],
    ['a token for all projects', () => `Authorization: Bearer ${hs256(secret, { ...CLAIMS, project_id: '*' })}`],
    [
      'a token for several projects',
      () => `Authorization: Bearer ${hs256(secret, { ...CLAIMS, project_id: ['x', 'demo'] })}`,
    ],
  ])('%s is accepted', async (_, header) => {
    const call = bodiless([header(), 'Connection: close'], CALL).replace('1000', '11');
    expect((await answerTo(stack.port, `${call}{"value":1}`)).status).toBe(200);
  });

  const RUN = '0199aaaa-0000-7000-8000-000000000000';
  test.each<[string, object, number]>([
    [CALL, { project_id: 'other' }, 403],
    [CALL, { project_id: undefined }, 403],
    [CALL, { project_id: 'demo\0' }, 403],
    [CALL, { project_id: 'Demo' }, 403],
    [CALL, { project_id: ['*x', ' demo'] }, 403],
    [CALL, { scope: 'runs:read runs:write' }, 403],
    [CALL, { scope: 'CALL' }, 403],
    [CALL, { scope: '' }, 403],
    ['POST /v4/demo%2f../streams/value', {}, 403],
    ['POST /v4/other/streams/value', {}, 403],
    [`GET /v4/demo/runs/${RUN}`, { scope: 'call' }, 403],
    [`GET /v4/demo/runs/${RUN}`, { scope: 'runs:read' }, 404],
    [`GET /v4/demo/runs/${RUN}/stream`, { scope: 'call' }, 403],
    [`GET /v4/demo/runs/${RUN}/logs`, { scope: 'call' }, 403],
    ['GET /v4/demo/runs', { scope: 'call' }, 403],
    ['GET /v4/demo', { scope: 'call runs:write' }, 403],
    ['GET /v4/demo/deliveries', { scope: 'call runs:write' }, 403],
    [`POST /v4/demo/runs/${RUN}/cancel`, { scope: 'call runs:read' }, 403],
    [`POST /v4/demo/runs/${RUN}/cancel`, { scope: 'runs:write' }, 404],
    ['POST /v4/demo/deliveries/redeliver', { scope: 'call runs:read' }, 403],
    [`POST /v4/demo/runs/${RUN}/deliveries/x/redeliver`, { scope: 'call runs:read' }, 403],
    ['GET /v4/other', {}, 403],
  ])('%s with %j: %i', async (line, claims, status) => {
    const bearer = `Authorization: Bearer ${hs256(secret, { ...CLAIMS, ...claims })}`;
    const answer = await answerTo(stack.port, bodiless([bearer], line));
    expect(answer.status).toBe(status);
    expect(codeOf(answer)).toBe(status === 403 ? 'forbidden' : 'not_found');
  });

  test('a caller with Expect: 100-continue gets 100 Continue only if it is authorized', async () => {
    const asking = (bearer: string): string =>
      bodiless([`Authorization: Bearer ${bearer}`, 'Expect: 100-continue']).replace('1000', '11');
    expect((await answerTo(stack.port, asking('x'))).status).toBe(401);
    const foreign = hs256(secret, { ...CLAIMS, project_id: 'other' });
    expect((await answerTo(stack.port, asking(foreign))).status).toBe(403);
    const connection = await RawConnection.open(stack.port);
    connection.send(asking(good()));
    await connection.until(({ text }) => text === 'HTTP/1.1 100 Continue\r\n\r\n');
    const [answer] = await connection.send('{"value":1}').final();
    expect(answer?.status).toBe(200);
    connection.leave();
  });
});

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const other = generateKeyPairSync('rsa', { modulusLength: 2048 });

async function statusFor(stack: TestStack, token: string): Promise<number> {
  return (await answerTo(stack.port, bodiless([`Authorization: Bearer ${token}`], 'GET /v4/nobody'))).status;
}
/** The token is valid, but for another project. */
const LET_IN = 403;

test('with a public key, tokens signed with its text or with another key are rejected', async () => {
  const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const stack = await startTestStack({
    env: { WORKER_APPS: 'none/none', JWT_SECRET: '', JWT_PUBLIC_KEY: pem.replaceAll('\n', '\\n') },
  });
  try {
    expect(await statusFor(stack, rs256(rsa.privateKey))).toBe(LET_IN);
    for (const secret of [pem, pem.trim(), pem.replaceAll('\n', '\\n'), stack.jwtSecret, '']) {
      expect(await statusFor(stack, hs256(secret))).toBe(401);
    }
    expect(await statusFor(stack, rs256(other.privateKey))).toBe(401);
    const jwk = other.publicKey.export({ format: 'jwk' });
    expect(await statusFor(stack, rs256(other.privateKey, { jwk, jku: 'http://127.0.0.1:1/' }))).toBe(401);
  } finally {
    await stack.stop();
  }
});

test('keys are accepted while the key set lists them; if the provider is down, known keys stay accepted', async () => {
  let keys = { one: rsa.publicKey } as Record<string, KeyObject>;
  const provider = createServer((_, response) => {
    const set = Object.entries(keys).map(([kid, key]) => ({ ...key.export({ format: 'jwk' }), kid, use: 'sig' }));
    response.end(JSON.stringify({ keys: set }));
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const { port } = provider.address() as AddressInfo;
  const stack = await startTestStack({
    env: {
      WORKER_APPS: 'none/none',
      JWT_SECRET: '',
      JWT_JWKS_URL: `http://127.0.0.1:${port}/jwks`,
      JWT_JWKS_COOLDOWN_S: '0.2',
      JWT_JWKS_MAX_AGE_S: '20',
    },
  });
  try {
    const [one, two] = [rs256(rsa.privateKey, { kid: 'one' }), rs256(other.privateKey, { kid: 'two' })];
    expect(await statusFor(stack, one)).toBe(LET_IN);
    expect(await statusFor(stack, rs256(other.privateKey, { kid: 'one' }))).toBe(401);
    keys = { ...keys, two: other.publicKey };
    await until(async () => (await statusFor(stack, two)) === LET_IN);
    keys = { two: other.publicKey };
    await until(async () => (await statusFor(stack, one)) === 401);
    expect(await statusFor(stack, two)).toBe(LET_IN);
    provider.close();
    provider.closeAllConnections();
    expect(await statusFor(stack, two)).toBe(LET_IN);
    await until(async () => (await statusFor(stack, rs256(rsa.privateKey, { kid: 'three' }))) === 503);
  } finally {
    await stack.stop();
    provider.close();
  }
});
