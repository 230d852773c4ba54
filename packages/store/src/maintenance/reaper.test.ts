import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { INDEX_MS, projectsKey } from '../keys.ts';
import { defaultTimings } from '../timings.ts';
import { ProjectIndex } from './project-index.ts';
import { Reaper } from './reaper.ts';
import { Rounds } from './rounds.ts';

const LOOK_EVERY_MS = 50;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await testRedis();
  redis = new Redis(server.socket as string);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

test('a dead gateway and a dead worker of an idle project are forgotten', async () => {
  const gateways = 'ip:{demo}:gateways';
  const workers = 'ip:{demo}:workers';
  const timings = { ...defaultTimings, reapMs: 50, pauseMs: 200, leaseMs: 500 };
  const logger = { warn: () => {}, error: () => {} };
  // No delivery is due in this test.
  const deliveries = { handOver: () => {} } as unknown as DeliveryQueue;
  const projects = new ProjectIndex(redis, timings.commandMs);
  const rounds = new Rounds([new Reaper({ redis, logger, timings, projects }, deliveries)]);
  await redis.zadd(projectsKey, '1', 'demo');
  // A project without an app would leave the index.
  await redis.hset('ip:{demo}:apps', 'hello', '{}');
  rounds.start();
  // A project is reaped in every round until this time has passed.
  await sleep(2.2 * INDEX_MS);
  await redis.zadd(gateways, Date.now() + timings.leaseMs, 'dead');
  await redis.zadd(workers, Date.now() + timings.leaseMs, 'dead');
  while ((await redis.zcard(gateways)) + (await redis.zcard(workers)) > 0) await sleep(LOOK_EVERY_MS);
  rounds.stop();
  expect(await redis.zcard(gateways)).toBe(0);
});
