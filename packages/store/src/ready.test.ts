import { ServiceError } from '@inference-proxy/contracts';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { projectPrefix } from './keys.ts';
import { storeNotReadyReason } from './ready.ts';
import { listRuns } from './runs/list.ts';
import { storeError } from './store-error.ts';

const LIMIT_MS = 60_000;

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await testRedis();
  redis = new Redis(server.url);
});
beforeEach(async () => {
  await redis.replicaof('NO', 'ONE');
  await redis.flushall();
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const trouble = (client = redis) => storeNotReadyReason(client, LIMIT_MS, ['list']);
const list = (project: string) => listRuns(redis, project, { limit: 10 }, LIMIT_MS);
const failure = (call: Promise<unknown>): Promise<ServiceError> =>
  call.then(
    () => Promise.reject(new Error('the call succeeded')),
    (error: unknown) => storeError(error),
  );

test('a wrong type, an error in a script and a missing permission are faults of the service, with their cause', async () => {
  await redis.set('text', 'x');
  await redis.call('ACL', 'SETUSER', 'limited', 'on', 'nopass', '+ping', '+info', '+client');
  const limited = redis.duplicate({ username: 'limited', password: 'x' });
  const calls = {
    WRONGTYPE: redis.lpush('text', 'y'),
    ERR: redis.eval('return nothing.at_all', 0),
    NOPERM: limited.get('text'),
  };
  for (const [kind, call] of Object.entries(calls)) {
    const error = await failure(call);
    expect(error).toMatchObject({ code: 'internal', cause: { message: expect.stringMatching(`^${kind} `) } });
  }
  expect(await trouble(limited)).toMatch(/^the run store refuses commands: NOPERM /);
  limited.disconnect();
});

test.each([
  'READONLY You can not write against a read only replica.',
  'LOADING Redis is loading the dataset in memory',
  'MASTERDOWN Link with MASTER is down',
  'CLUSTERDOWN The cluster is down',
  'MISCONF Errors writing to the AOF file',
  'NOREPLICAS Not enough good replicas to write.',
  'BUSY Redis is busy running a script.',
  'ERR max number of clients reached',
])('%s is an outage', (message) => {
  expect(storeError(Object.assign(new Error(message), { name: 'ReplyError' })).code).toBe('unavailable');
});

test('a lost connection is an outage, a full Redis is overload, an error of our own code is a fault', () => {
  expect(storeError(new Error('Connection is closed.')).code).toBe('unavailable');
  expect(storeError(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })).code).toBe('unavailable');
  expect(storeError(new Error("OOM command not allowed when used memory > 'maxmemory'.")).code).toBe('overloaded');
  expect(storeError(new TypeError('answers is not iterable')).code).toBe('internal');
  const known = new ServiceError('not_found', 'There is no such run.');
  expect(storeError(known)).toBe(known);
});

test('a Redis that became a replica answers a PING, and the store is in trouble until it is a master again', async () => {
  expect(await trouble()).toBeUndefined();
  await redis.replicaof('127.0.0.1', '1');
  expect(await redis.ping()).toBe('PONG');
  expect(await trouble()).toMatch(/^the run store refuses commands: READONLY /);
  await redis.replicaof('NO', 'ONE');
  expect(await trouble()).toBeUndefined();
});

test('a script that fails three times in a row is trouble, with its name, until it succeeds for any project', async () => {
  await redis.set(`${projectPrefix('damaged')}runs`, 'no sorted set');
  for (let call = 0; call < 3; call++) {
    expect(await trouble()).toBeUndefined();
    expect(await failure(list('damaged'))).toMatchObject({ code: 'internal' });
  }
  expect(await trouble()).toMatch(/^the run store refuses commands: WRONGTYPE .* \(in the script list\)$/);
  await list('sound');
  expect(await trouble()).toBeUndefined();
});

test('a store that does not answer is trouble', async () => {
  server.pause();
  expect(await storeNotReadyReason(redis, 10, [])).toBe('the run store does not answer');
  server.resume();
});
