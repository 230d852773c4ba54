import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { withinLimit } from './redis.ts';

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

/** Blocks this process. */
function standStill(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('an answer that arrives while the process is blocked is in time, for any duration', async () => {
  const call = withinLimit(redis.ping(), 10);
  standStill(300);
  expect(await call).toBe('PONG');
});

test('a call without an answer in time is rejected with unavailable', async () => {
  await expect(withinLimit(redis.blpop('nothing', 0), 10)).rejects.toMatchObject({ code: 'unavailable' });
});
