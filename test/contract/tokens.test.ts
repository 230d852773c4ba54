// Contract 6, "Tokens": revocation over several gateways, and keys of projects, on the whole stack.
import { createHmac, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { EventReader } from '../client/event-reader.ts';
import { open, request } from '../client/http.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

const KEY_OF_DEMO = 'k'.repeat(40);
const UNKNOWN_RUN = '/v4/demo/runs/0199aaaa-0000-7000-8000-000000000000';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack({
    scale: { gateway: 2, worker: 1, dispatcher: 1 },
    env: (part) => ({
      WORKER_APPS: 'demo/streams',
      ...(part.startsWith('gateway') && { JWT_SECRETS: `demo-1@demo:${KEY_OF_DEMO}` }),
    }),
  });
  await new Caller(stack.port, stack.jwtSecret).ready('streams');
});
afterAll(() => stack.stop());

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const signed = (project: string, more: object = {}): string => signToken(stack.jwtSecret, { project, ttlS: 600, more });
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
/** Returns the status of a look-up at each gateway. */
const statuses = (token: string): Promise<number[]> =>
  Promise.all(
    stack.gatewayPorts().map(async (port) => {
      return (await request(port, UNKNOWN_RUN, { method: 'GET', headers: bearer(token) })).status;
    }),
  );

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
    const text = `${head}.${encode({ project_id: project, exp: Math.floor(Date.now() / 1000) + 600 })}`;
    return `${text}.${createHmac('sha256', KEY_OF_DEMO).update(text).digest('base64url')}`;
  };
  expect(await statuses(byKey('demo'))).toEqual([404, 404]);
  expect(await statuses(byKey('*'))).toEqual([401, 401]);
  expect(stack.logs()).not.toContain(KEY_OF_DEMO);
});
