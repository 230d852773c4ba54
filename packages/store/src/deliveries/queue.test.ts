// Jobs between machines whose clocks disagree: how long one has waited is told by the store's.
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { newRunId } from '../runs/ids.ts';
import { DeliveryQueue } from './queue.ts';

const HOUR_MS = 3_600_000;
const logger = { warn: () => {}, error: () => {} };
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
  'a job of a machine whose clock is off by %d ms is as old to another as it is',
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
