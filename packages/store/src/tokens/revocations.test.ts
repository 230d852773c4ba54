// Contract 6, "Tokens": the list of revoked tokens: matching tokens, copies at gateways, and the expiry of entries.
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { revocationChangesKey, revokedKey } from '../keys.ts';
import { Revocations } from './revocations.ts';

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
afterEach(() => redis.flushall());

const gateway = (): Revocations => new Revocations(redis, { warn: () => {} } as never, { commandMs: 60_000 });
const LATER = Date.now() + 3_600_000;

test('a token is revoked by its id, for its project only or for all', async () => {
  const here = gateway();
  await here.revoke('acme', { jti: 'a' }, LATER);
  await here.revoke('*', { jti: 'b' }, LATER);
  expect(here.covers('acme', { jti: 'a' })).toBe(true);
  expect(here.covers('demo', { jti: 'a' })).toBe(false);
  expect(here.covers('demo', { jti: 'b' })).toBe(true);
  expect(here.covers('acme', { jti: 'c' })).toBe(false);
  expect(here.covers('acme', { sub: 'a' })).toBe(false);
  expect(here.covers('acme', {})).toBe(false);
});

test('a subject is revoked until an issue time; a token without an issue time may be older', async () => {
  const here = gateway();
  await here.revoke('acme', { sub: 'ada', issuedUntil: 1000 }, LATER);
  expect(here.covers('acme', { sub: 'ada', issuedAt: 1000 })).toBe(true);
  expect(here.covers('acme', { sub: 'ada', issuedAt: 1001 })).toBe(false);
  expect(here.covers('acme', { sub: 'ada' })).toBe(true);
  expect(here.covers('acme', { sub: 'bob', issuedAt: 1 })).toBe(false);
  await here.revoke('acme', { sub: 'ada', issuedUntil: 2000 }, LATER);
  expect(here.covers('acme', { sub: 'ada', issuedAt: 1001 })).toBe(true);
});

test('another gateway has a revocation after its next round, without a message', async () => {
  const [here, there] = [gateway(), gateway()];
  await there.ready();
  await here.revoke('acme', { jti: 'a' }, LATER);
  expect(there.covers('acme', { jti: 'a' })).toBe(false);
  await there.run();
  expect(there.covers('acme', { jti: 'a' })).toBe(true);
});

test('a round costs one read while nothing changes, and an emptied Redis is noticed', async () => {
  const here = gateway();
  await here.revoke('acme', { jti: 'a' }, LATER);
  await redis.del(revokedKey);
  await here.run();
  expect(here.covers('acme', { jti: 'a' })).toBe(true);
  await redis.del(revocationChangesKey);
  await here.run();
  expect(here.covers('acme', { jti: 'a' })).toBe(false);
});

test('entries expire with their tokens, and the latest expiry of a token counts', async () => {
  const here = gateway();
  await here.revoke('acme', { jti: 'short' }, Date.now() - 1);
  expect(here.covers('acme', { jti: 'short' })).toBe(false);
  await here.revoke('acme', { jti: 'a' }, LATER);
  await here.revoke('acme', { jti: 'a' }, LATER - 1000);
  expect(await redis.zrange(revokedKey, '0', '-1', 'WITHSCORES')).toEqual(['["acme","a"]', String(LATER)]);
});

test('a full list refuses further entries and keeps its entries', async () => {
  const here = gateway();
  const members = Array.from({ length: 10_000 }, (_, n) => [LATER, `["acme","t${n}"]`]).flat();
  await redis.zadd(revokedKey, ...members);
  await expect(here.revoke('acme', { jti: 'more' }, LATER)).rejects.toMatchObject({ code: 'overloaded' });
  await here.ready();
  expect(here.covers('acme', { jti: 't9999' })).toBe(true);
});

test('the list is unknown before the first read, and an outage keeps the last copy', async () => {
  const there = gateway();
  expect(there.known).toBe(false);
  await there.revoke('acme', { jti: 'a' }, LATER);
  expect(there.known).toBe(true);
  const lost = new Redis(server.socket as string, { enableOfflineQueue: false });
  const cut = new Revocations(lost, { warn: () => {} } as never, { commandMs: 60_000 });
  lost.disconnect();
  await expect(cut.ready()).rejects.toMatchObject({ code: 'unavailable' });
  expect(cut.known).toBe(false);
});
