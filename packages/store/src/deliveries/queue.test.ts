// Contract 4: jobs between machines whose clocks differ. The store's clock decides how long a job has waited.
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { newRunId } from '../runs/accept.ts';
import { DeliveryQueue, isOfTheQueue } from './queue.ts';

const HOUR_MS = 3_600_000;
const warnings: string[] = [];
const logger = { warn: (_fields: object, text: string) => void warnings.push(text), error: () => {} };
const clients: Redis[] = [];
const queues: DeliveryQueue[] = [];
let redis: TestRedis;

beforeAll(async () => {
  redis = await testRedis();
});
afterAll(async () => {
  for (const queue of queues) await queue.close();
  for (const client of clients) client.disconnect();
  await redis.stop();
});

function queueAt(): DeliveryQueue {
  const client = new Redis(redis.socket ?? String(redis.port), { maxRetriesPerRequest: null });
  clients.push(client);
  const queue = new DeliveryQueue(client, logger);
  queues.push(queue);
  return queue;
}

test.each([-HOUR_MS, HOUR_MS])(
  'a job of a machine whose clock is off by %d ms has the same age on another machine',
  async (offMs) => {
    const real = Date.now;
    const wrong = jest.spyOn(Date, 'now').mockImplementation(() => real.call(Date) + offMs);
    const theirs = queueAt();
    await theirs.add({ project: 'demo', runId: newRunId(), attempt: 1 }, 0);
    expect(await theirs.backlogMs()).toBeLessThan(HOUR_MS / 2);
    wrong.mockRestore();
    expect(await queueAt().backlogMs()).toBeLessThan(HOUR_MS / 2);
  },
);

test('a due delayed job counts as waiting even if no dispatcher runs', async () => {
  await clients[0]?.flushall();
  const queue = queueAt();
  await queue.add({ project: 'demo', runId: newRunId(), attempt: 2 }, HOUR_MS);
  const now = await queue.now();
  jest.spyOn(queue, 'now').mockResolvedValue(now + 3 * HOUR_MS);
  const age = await queue.backlogMs();
  expect([age >= 2 * HOUR_MS, age < 3 * HOUR_MS]).toEqual([true, true]);
});

test('if Redis does not answer, the figures of the queue are rejected within the time limit', async () => {
  const queue = queueAt();
  await queue.now();
  redis.pause();
  try {
    await expect(queue.backlogMs()).rejects.toThrow();
    await expect(queue.counts()).rejects.toThrow();
  } finally {
    redis.resume();
  }
});

test('failed connection attempts to Redis are not logged by the queue', async () => {
  const client = new Redis(1, '127.0.0.1', { maxRetriesPerRequest: null, retryStrategy: () => 1, lazyConnect: true });
  const refusals: Error[] = [];
  client.on('error', (error) => refusals.push(error));
  clients.push(client);
  const queue = new DeliveryQueue(client, logger);
  queues.push(queue);
  warnings.length = 0;
  const tenth = new Promise<void>((resolve) => client.on('error', () => refusals.length >= 10 && resolve()));
  client.connect().catch(() => {});
  await tenth;
  expect(warnings).toEqual([]);
});

test('errors of the queue are distinguished from errors of its connection', () => {
  const wrongType = new Error('WRONGTYPE Operation against a key holding the wrong kind of value');
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { syscall: 'connect' });
  const reset = Object.assign(new Error('read ECONNRESET'), { syscall: 'read' });
  expect([wrongType, refused, reset, new Error('Connection is closed.')].map(isOfTheQueue)).toEqual([
    true,
    false,
    false,
    false,
  ]);
});
