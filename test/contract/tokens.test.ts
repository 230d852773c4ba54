// Contract 6, "Tokens": accepted and rejected tokens, revocation, and keys of projects. A stack of its own, because it has two gateways and
// settings of tokens.
import { createHmac, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { EventReader } from '../client/event-reader.ts';
import { type Answer, errorOf, open, request } from '../client/http.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

/** The issuer and the audience that the gateways accept. */
const ACCEPTED = { iss: 'us', aud: 'callers' };
const KEY_OF_DEMO = 'k'.repeat(40);
const UNKNOWN_RUN = '/v4/demo/runs/0199aaaa-0000-7000-8000-000000000000';

let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  stack = await startTestStack({
    scale: { gateway: 2, worker: 1, dispatcher: 1 },
    env: (part) => ({
      WORKER_APPS: 'demo/streams',
      JWT_ISSUER: 'us',
      JWT_AUDIENCE: 'callers',
      ...(part.startsWith('gateway') && { JWT_SECRETS: `demo-1@demo:${KEY_OF_DEMO}` }),
    }),
  });
  caller = new Caller(stack.port, stack.jwtSecret, 'demo', ACCEPTED);
  await caller.ready('streams');
});
afterAll(() => stack.stop());

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const HOUR_AHEAD = Math.floor(Date.now() / 1000) + 3600;
const CLAIMS = { sub: 'tester', project_id: 'demo', exp: HOUR_AHEAD, ...ACCEPTED };

/** Signs a token without the service's code. */
function token(claims: object = {}, header: object = {}, key = stack.jwtSecret): string {
  const signed = `${encode({ alg: 'HS256', typ: 'JWT', ...header })}.${encode({ ...CLAIMS, ...claims })}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}
const calledWith = (authorization: string): Promise<Answer> =>
  caller.call('streams/value', { value: 1 }, { headers: { authorization } });

function expectRefused(answer: Answer, status: number, code: string): void {
  expect([answer.status, errorOf(answer).code]).toEqual([status, code]);
}

const signed = (project: string, more: object = {}): string =>
  signToken(stack.jwtSecret, { project, ttlS: 600, more: { ...ACCEPTED, ...more } });
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
/** Returns the status of a look-up at each gateway. */
const statuses = (token: string): Promise<number[]> =>
  Promise.all(
    stack.gatewayPorts().map(async (port) => {
      return (await request(port, UNKNOWN_RUN, { method: 'GET', headers: bearer(token) })).status;
    }),
  );

describe('a token', () => {
  test('is required', async () => {
    const answer = await caller.request('/v4/demo/streams/value', { headers: { authorization: '' }, body: 'no JSON' });
    expectRefused(answer, 401, 'unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  test('for the project is accepted', async () => {
    expect((await calledWith(`Bearer ${token()}`)).status).toBe(200);
    expect((await calledWith(`bearer ${token({ project_id: ['x', 'demo'] })}`)).status).toBe(200);
    expect((await calledWith(`Bearer ${token({ project_id: '*' })}`)).status).toBe(200);
  });

  test.each([
    ['malformed', () => 'abc'],
    ['of another scheme', () => `Basic ${token()}`],
    ['expired', () => `Bearer ${token({ exp: 1 })}`],
    ['without exp', () => `Bearer ${token({ exp: undefined })}`],
    ['signed by another key', () => `Bearer ${token({}, {}, 'x'.repeat(44))}`],
    ['with alg none', () => `Bearer ${encode({ alg: 'none' })}.${encode(CLAIMS)}.`],
    ['with another algorithm', () => `Bearer ${token({}, { alg: 'HS512' })}`],
    ['of another issuer', () => `Bearer ${token({ iss: 'them' })}`],
    ['for another audience', () => `Bearer ${token({ aud: 'others' })}`],
  ])('%s is 401', async (_, authorization) => {
    expectRefused(await calledWith(authorization()), 401, 'unauthorized');
  });

  test('for another project or another scope is 403', async () => {
    expectRefused(await calledWith(`Bearer ${token({ project_id: 'other' })}`), 403, 'forbidden');
    expectRefused(await calledWith(`Bearer ${token({ scope: 'runs:read' })}`), 403, 'forbidden');
  });
});

test('every gateway rejects a revoked token that it has verified before, and an open stream continues to its end', async () => {
  const jti = randomUUID();
  const token = signed('demo', { jti });
  expect(await statuses(token)).toEqual([404, 404]);
  const [port = 0] = stack.gatewayPorts();
  const gate = join(stack.marksDir, jti);
  const stream = await open(port, '/v4/demo/streams/stepped', {
    headers: { ...bearer(token), accept: 'text/event-stream' },
    body: JSON.stringify({ gate }),
  });
  const events = new EventReader(stream);
  expect(await events.next()).toBe('data: begun');
  const revoker = bearer(signed('demo', { scope: 'tokens:write' }));
  expect((await request(port, `/v4/demo/tokens/${jti}`, { method: 'DELETE', headers: revoker })).status).toBe(204);
  await until(async () => (await statuses(token)).every((status) => status === 401));
  await writeFile(gate, '');
  expect(await events.rest()).toEqual(['data: done']);
});

test('a revocation outlives a restart of Redis and a restart of every gateway', async () => {
  const jti = randomUUID();
  const token = signed('demo', { jti });
  const { port } = stack;
  const revoker = bearer(signed('*', { scope: 'tokens:write' }));
  expect((await request(port, `/v4/demo/tokens/${jti}`, { method: 'DELETE', headers: revoker })).status).toBe(204);
  await stack.kill('redis', 'SIGTERM');
  for (const gateway of ['gateway-1', 'gateway-2'] as const) await stack.restart(gateway);
  expect(await statuses(token)).toEqual([401, 401]);
});

test('the key of one project signs for that project alone', async () => {
  const byKey = (project: string): string => {
    const head = encode({ alg: 'HS256', kid: 'demo-1' });
    const text = `${head}.${encode({ ...CLAIMS, project_id: project })}`;
    return `${text}.${createHmac('sha256', KEY_OF_DEMO).update(text).digest('base64url')}`;
  };
  expect(await statuses(byKey('demo'))).toEqual([404, 404]);
  expect(await statuses(byKey('*'))).toEqual([401, 401]);
  expect(stack.logs()).not.toContain(KEY_OF_DEMO);
});
