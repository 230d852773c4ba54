// Contract 7, "Versions": old versions are removed, except those that somebody may still need.
import { randomUUID } from 'node:crypto';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { deployedKey, names, projectPrefix } from '../keys.ts';
import { runScript } from '../scripts.ts';
import { UsedBundles } from './used-bundles.ts';
import { deployScript } from './version-deploy.ts';
import { reportScript } from './version-report.ts';
import { VersionStore } from './version-store.ts';
import { trimScript } from './versions-trim.ts';

const LONG_MS = 600_000;
const commandMs = 60_000;

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

/** A version's name that begins with a number. */
const nameOf = (number: number): string => String(number).padStart(4, '0').padEnd(64, 'a');

/** One app whose versions are numbered. The test plays its worker. */
class Numbered {
  readonly project = randomUUID();
  readonly prefix = projectPrefix(this.project);
  readonly store = new VersionStore(redis, redis, { commandMs });

  /** Deploys a version, and reports the worker's last step. */
  async deploy(number: number, step?: 'ready' | 'failed', mode: 'activate' | 'build' = 'activate'): Promise<void> {
    const version = nameOf(number);
    await runScript(redis, deployScript, this.project, {
      ...{ app: 'chat', version, bundle: version, size: 1, mode, termMs: LONG_MS },
    });
    // The order of versions is the order of their times. Redis' clock gives whole milliseconds.
    await redis.zadd(`${this.prefix}${names.versions}chat`, Date.now() - LONG_MS + number, version);
    if (step) await this.report(step);
  }

  async activate(number: number): Promise<void> {
    await this.store.activate(this.project, { app: 'chat', version: nameOf(number), termMs: LONG_MS });
    await this.report('ready');
  }

  async report(step: 'ready' | 'failed'): Promise<void> {
    const { rollOut } = await this.store.deployment(this.project, 'chat');
    const { version, number } = rollOut as { version: string; number: string };
    await runScript(redis, reportScript, this.project, {
      ...{ app: 'chat', version, rollOut: number, workerId: 'w', number: 1, step, reason: 'x', lines: [] },
    });
  }

  trim(): Promise<number> {
    return runScript(redis, trimScript, this.project, 10);
  }

  async kept(): Promise<number[]> {
    const versions = await redis.zrange(`${this.prefix}${names.versions}chat`, '0', '-1');
    return versions.map((version) => Number(version.slice(0, 4)));
  }
}

const upTo = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n);

test('the last ten versions stay; the records, logs and list entries of older versions go', async () => {
  const app = new Numbered();
  for (const number of upTo(1, 13)) await app.deploy(number, 'ready', 'build');
  expect(await app.trim()).toBe(3);
  expect(await app.trim()).toBe(0);
  expect(await app.kept()).toEqual(upTo(4, 13));
  expect(await app.store.find(app.project, 'chat', nameOf(3))).toBeUndefined();
  expect((await redis.keys(`${app.prefix}*`)).filter((key) => key.includes(nameOf(3)))).toEqual([]);
});

test('the active version stays, and after a rollback the version that was active before', async () => {
  const app = new Numbered();
  for (const number of upTo(1, 10)) await app.deploy(number, 'ready', 'build');
  await app.activate(1);
  for (const number of upTo(11, 14)) await app.deploy(number, 'ready', 'build');
  expect(await app.trim()).toBe(4);
  expect(await app.kept()).toEqual([1, ...upTo(6, 14)]);
  await app.activate(14);
  await app.deploy(15, 'ready', 'build');
  await app.trim();
  // Version 1 was activated later than most versions were deployed.
  expect(await app.kept()).toEqual([1, ...upTo(7, 15)]);
});

test('failed versions push out no version that can serve', async () => {
  const app = new Numbered();
  await app.deploy(1, 'ready');
  for (const number of upTo(2, 13)) await app.deploy(number, 'failed');
  expect(await app.trim()).toBe(2);
  expect(await app.kept()).toEqual([1, ...upTo(4, 13)]);
});

test('a version that is built or rolled out stays', async () => {
  const app = new Numbered();
  for (const number of upTo(1, 12)) await app.deploy(number, 'ready', 'build');
  await app.store.activate(app.project, { app: 'chat', version: nameOf(1), termMs: LONG_MS });
  await app.trim();
  expect(await app.kept()).toEqual([1, ...upTo(3, 12)]);
});

test('a version with running or queued runs stays until their end', async () => {
  const app = new Numbered();
  for (const number of upTo(1, 12)) await app.deploy(number, 'ready', 'build');
  const [run, queue] = [`${app.prefix}${names.run}r1`, `${app.prefix}${names.queue}chat@${nameOf(2)}`];
  await redis.zadd(app.prefix + names.leases, Date.now() + LONG_MS, 'r1');
  await redis.hset(run, { state: 'running', v: nameOf(1) });
  await redis.zadd(queue, 1, 'r2');
  expect(await app.trim()).toBe(0);
  await redis.del(run, queue);
  expect(await app.trim()).toBe(2);
});

/** Deploys a version with this bundle as a gateway does. */
const deployed = (app: Numbered, number: number, bundle: string, store = app.store) =>
  store.deploy(app.project, {
    ...{ app: 'chat', version: nameOf(number), bundle, size: 1, mode: 'activate', termMs: LONG_MS },
  });
const refused = { code: 'unavailable', retryAfterS: 60 };

test('a deployment of a bundle that is being removed is refused, and changes no version', async () => {
  const app = new Numbered();
  const used = new UsedBundles(redis, { commandMs });
  await app.deploy(1, 'ready');
  await redis.sadd(deployedKey, app.project);
  expect(await used.removing([nameOf(1), nameOf(2)])).toEqual([nameOf(2)]);
  await expect(deployed(app, 1, nameOf(2))).rejects.toMatchObject(refused);
  await expect(deployed(app, 3, nameOf(2))).rejects.toMatchObject(refused);
  expect(await app.store.find(app.project, 'chat', nameOf(1))).toMatchObject({ state: 'active', bundle: nameOf(1) });
  expect(await app.store.find(app.project, 'chat', nameOf(3))).toBeUndefined();
});

test('a deployment whose bundle is removed meanwhile is refused, and a repeat keeps the bundle', async () => {
  const app = new Numbered();
  const used = new UsedBundles(redis, { commandMs });
  let removed: readonly string[] | undefined;
  // The removal begins between the first look and the record.
  const racing = new Proxy(redis, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key);
      if (key !== 'exists') return typeof value === 'function' ? value.bind(target) : value;
      return async (name: string) => {
        const found = await redis.exists(name);
        removed ??= await used.removing([nameOf(4)]);
        return found;
      };
    },
  });
  const store = new VersionStore(racing, redis, { commandMs });
  await expect(deployed(app, 4, nameOf(4), store)).rejects.toMatchObject(refused);
  expect(removed).toEqual([nameOf(4)]);
  // The deployment is recorded, so the bundle is used from now on.
  expect(await used.removing([nameOf(4)])).toEqual([]);
});
