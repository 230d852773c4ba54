// Contract 7: old versions, unused bundles and what interrupted uploads left are removed. Nothing is removed that a version uses.
import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BundleStore, openBundleStore } from '@inference-proxy/bundles';
import { UsedBundles, VersionStore } from '@inference-proxy/store';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { BundleCollector } from './bundle-collector.ts';

const commandMs = 60_000;
const logger = { info: () => {}, warn: () => {} };

let server: TestRedis;
let redis: Redis;
let folder: string;
let bundles: BundleStore;
let versions: VersionStore;
const project = randomUUID();
beforeAll(async () => {
  server = await testRedis();
  redis = new Redis(server.socket as string);
  versions = new VersionStore(redis, redis, { commandMs });
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});
beforeEach(async () => {
  await redis.flushall();
  folder = await mkdtemp(join(tmpdir(), 'collector-'));
  bundles = await openBundleStore({ BUNDLES_URL: { kind: 'file', folder }, AWS_REGION: '' });
});
afterEach(() => rm(folder, { recursive: true }));

const collector = (retentionMs: number, uploadMs = 60_000): BundleCollector =>
  new BundleCollector({ bundles, used: new UsedBundles(redis, { commandMs }), retentionMs, uploadMs, logger });

/** Runs a round whose turn is free. */
async function round(of: BundleCollector): Promise<void> {
  await redis.del('ip:bundles:collecting');
  await of.run();
}

async function store(text: string): Promise<string> {
  const writer = await bundles.write();
  await writer.write(Buffer.from(text));
  const digest = createHash('sha256').update(text).digest('hex');
  await writer.commit(digest);
  return digest;
}
const deploy = (bundle: string) =>
  versions.deploy(project, { app: 'chat', version: bundle, bundle, size: 1, mode: 'build', termMs: 60_000 });
async function stored(): Promise<string[]> {
  const digests: string[] = [];
  for await (const digest of bundles.list()) digests.push(digest);
  return digests.sort();
}

test('an unused bundle is removed after its retention, and a used bundle stays', async () => {
  const [used, unused] = [await store('used'), await store('unused')];
  await deploy(used);
  await round(collector(60_000));
  await round(collector(60_000));
  expect(await stored()).toEqual([used, unused].sort());
  await round(collector(-1));
  expect(await stored()).toEqual([used]);
});

test('the retention begins when the last version goes, not with the upload', async () => {
  const bundle = await store('old');
  await deploy(bundle);
  await round(collector(60_000));
  await versions.delete(project, 'chat');
  await round(collector(60_000));
  expect(await stored()).toEqual([bundle]);
  const since = await redis.zscore('ip:bundles:unused', bundle);
  expect(Number(since)).toBeGreaterThan(Date.now() - 30_000);
  await round(collector(-1));
  expect(await stored()).toEqual([]);
});

test('a bundle that is deployed again in time stays', async () => {
  const bundle = await store('again');
  await round(collector(60_000));
  await deploy(bundle);
  await round(collector(60_000));
  await round(collector(-1));
  expect(await stored()).toEqual([bundle]);
  expect(await redis.exists('ip:bundles:unused')).toBe(0);
});

test('what a dead gateway has left of an upload is removed, but not an upload under way', async () => {
  const writer = await bundles.write();
  await writer.write(Buffer.from('half'));
  await round(collector(0, 60_000));
  expect(await bundles.removeInterrupted(60_000)).toBe(0);
  await round(collector(-1, -5_000));
  expect(await bundles.removeInterrupted(-5_000)).toBe(0);
  await writer.abort();
});

test('one gateway at a time collects', async () => {
  await store('unused');
  await collector(60_000).run();
  await collector(-1).run();
  expect(await stored()).toHaveLength(1);
  await round(collector(-1));
  expect(await stored()).toEqual([]);
});

test('a bundle store that is away stops no gateway', async () => {
  const lines: string[] = [];
  const away = await openBundleStore({ BUNDLES_URL: { kind: 'file', folder: '/proc/version' }, AWS_REGION: '' });
  const used = new UsedBundles(redis, { commandMs });
  const warn = (_: object, text: string): void => void lines.push(text);
  await new BundleCollector({ bundles: away, used, retentionMs: 0, uploadMs: 0, logger: { ...logger, warn } }).run();
  expect(lines).toEqual(['old versions and bundles were not removed; a later round repeats it']);
});
