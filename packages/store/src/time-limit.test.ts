import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { withinLimit } from './time-limit.ts';

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await testRedis();
  redis = new Redis(server.url);
  await redis.ping();
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** Nothing else happens in this process meanwhile. */
function standStill(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('an answer that came while the process stood still is in time, however long that was', async () => {
  const call = withinLimit(redis.ping(), 10);
  standStill(300);
  expect(await call).toBe('PONG');
});

test('without one in time the caller is told', async () => {
  await expect(withinLimit(redis.blpop('nothing', 0), 10)).rejects.toMatchObject({ code: 'unavailable' });
});
