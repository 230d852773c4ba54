// Contract 2 and 6: a Redis that refuses commands. An outage is `unavailable`, a fault of the service is `internal`; /readyz and the log
// report both, and an outage does not flood the log. A stack of its own, because its Redis refuses commands.
import { connectRedis, createLogger, redisReady } from '@inference-proxy/platform';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { errorOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

const SERVICES = ['gateway', 'worker', 'dispatcher'] as const;

let stack: TestStack;
let caller: Caller;
let redis: ReturnType<typeof connectRedis>;
beforeAll(async () => {
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/streams', LEASE_MS: '120000' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  redis = connectRedis(stack.redisUrl, 'test', createLogger({ name: 'test', level: 'fatal' }));
  await Promise.all([caller.ready('streams'), redisReady(redis)]);
});
afterAll(async () => {
  redis.disconnect();
  await stack.stop();
});

interface Line {
  readonly name: string;
  readonly msg: string;
  readonly operationsPort?: number;
  readonly err?: { readonly message: string };
}

const lines = (): Line[] =>
  stack
    .logs()
    .split('\n')
    .map((line) => line.slice(line.indexOf('{')))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);
const refusals = (service: string, cause: string): Line[] =>
  lines().filter(
    ({ name, msg, err }) => name === service && msg === 'Redis refused a command' && err?.message.startsWith(cause),
  );

async function readiness(service: string): Promise<string> {
  const port = await until(
    () => lines().findLast(({ name, msg }) => name === service && msg === 'ready')?.operationsPort,
  );
  return (await fetch(`http://127.0.0.1:${port}/readyz`)).text();
}

test('a Redis that became a replica: calls are unavailable, no service is ready, and the log stays short', async () => {
  await redis.replicaof('127.0.0.1', '1');
  const answer = await caller.call('streams/value', { value: 1 });
  expect(answer.status).toBe(503);
  expect(errorOf(answer)).toMatchObject({ code: 'unavailable' });
  for (const service of SERVICES)
    expect(await readiness(service)).toMatch(/"why":"the run store refuses commands: READONLY /);
  expect((await caller.request('/readyz', { method: 'GET' })).status).toBe(503);
  // A worker whose pub/sub connection broke asks for runs when the connection is back.
  await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  const takeFailed = (): number => lines().filter(({ msg }) => msg === 'a take failed; trying again').length;
  await until(() => takeFailed() > 0);
  const before = refusals('worker', 'READONLY').length;
  await until(() => refusals('worker', 'READONLY').length > before + 3);
  // The wait lasts four seconds. One line every 200 ms would be twenty lines.
  expect(takeFailed()).toBe(1);
  await redis.replicaof('NO', 'ONE');
  await until(async () => (await caller.call('streams/value', { value: 2 })).status === 200);
  for (const service of SERVICES) expect(await readiness(service)).toBe('{"status":"ready"}');
  await until(() => lines().some(({ msg }) => msg === 'no longer: a take failed; trying again'));
});

test('a script that fails: calls are internal, the log names the script and the cause, the gateway is not ready', async () => {
  const key = 'ip:{demo}:runs';
  await redis.rename(key, `${key}:kept`);
  await redis.set(key, 'damaged');
  for (let calls = 0; calls < 3; calls++) {
    const answer = await caller.call('streams/value', { value: calls });
    expect(answer.status).toBe(500);
    expect(errorOf(answer)).toMatchObject({ code: 'internal' });
  }
  expect(await readiness('gateway')).toMatch(
    /"why":"the run store refuses commands: WRONGTYPE .*\(in the script accept\)"/,
  );
  await until(() => refusals('gateway', 'WRONGTYPE').length > 0);
  expect(stack.logs()).toMatch(/WRONGTYPE [^"]*\(in the script accept\)/);
  await redis.rename(`${key}:kept`, key);
  expect((await caller.call('streams/value', { value: 4 })).status).toBe(200);
  expect(await readiness('gateway')).toBe('{"status":"ready"}');
});
