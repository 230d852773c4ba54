// Contract 7, "Versions": the steps of versions and roll-outs on a real Redis: repeats, lost workers, late reports, the end time.
import { randomUUID } from 'node:crypto';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { defaultTimings } from '../timings.ts';
import type { AuditEntry } from './audit-entry.ts';
import { DeploymentFeed } from './deployment-feed.ts';
import { RollOuts } from './roll-outs.ts';
import type { RollOutMode } from './version-deploy.ts';
import type { VersionState } from './version-record.ts';
import type { VersionReport } from './version-report.ts';
import { VersionStore } from './version-store.ts';

const timings = { ...defaultTimings, commandMs: 60_000 };
const LONG_MS = 600_000;

let server: TestRedis;
let redis: Redis;
let subscriber: Redis;
beforeAll(async () => {
  server = await testRedis();
  redis = new Redis(server.socket as string);
  subscriber = new Redis(server.socket as string);
});
afterAll(async () => {
  redis.disconnect();
  subscriber.disconnect();
  await server.stop();
});

const nameOf = (digit: string): string => digit.repeat(64);
const [A, B] = [nameOf('a'), nameOf('b')];

/** One app in a project of its own, with workers that the test plays. */
class Played {
  readonly project = randomUUID();
  readonly store = new VersionStore(redis, subscriber, timings);
  /** Undoings that gateways have recorded for this project. */
  readonly undone: AuditEntry[] = [];
  readonly #rollOuts = new RollOuts({
    redis,
    logger: { warn: () => {}, error: () => {} },
    timings,
    undone: (project, entry) => {
      if (project === this.project) this.undone.push(entry);
    },
  });
  #reports = 0;

  deploy(version: string, mode: RollOutMode = 'activate', termMs = LONG_MS) {
    return this.store.deploy(this.project, {
      app: 'chat',
      version,
      bundle: version,
      size: 1,
      author: 'ada',
      mode,
      termMs,
    });
  }

  activate(version: string) {
    return this.store.activate(this.project, { app: 'chat', version, author: 'bob', termMs: LONG_MS });
  }

  /** Gives a worker a lease of the app, which ends after `ms`. */
  async serves(worker: string, ms = LONG_MS): Promise<void> {
    await redis.zadd(`${projectPrefix(this.project)}${names.serving}chat`, Date.now() + ms, worker);
  }

  async rollOut(): Promise<{ version: string; number: string }> {
    const deployment = await this.store.deployment(this.project, 'chat');
    if (!deployment.rollOut) throw new Error('no roll-out');
    return deployment.rollOut;
  }

  async report(workerId: string, step: VersionReport['step'], more: Partial<VersionReport> = {}) {
    const { version, number } = await this.rollOut();
    return this.reportOf({ version, number }, workerId, step, more);
  }

  reportOf(
    { version, number }: { version: string; number: string },
    workerId: string,
    step: VersionReport['step'],
    more: Partial<VersionReport> = {},
  ) {
    const feed = new DeploymentFeed({ commands: redis, subscriber, workerId, commandMs: timings.commandMs });
    const lines = [{ time: '2026-11-22T00:00:00Z', text: step }];
    return feed.report(this.project, {
      app: 'chat',
      version,
      rollOut: number,
      number: ++this.#reports,
      step,
      lines,
      ...more,
    });
  }

  async state(version: string): Promise<VersionState | undefined> {
    return (await this.store.find(this.project, 'chat', version))?.state;
  }

  /** A gateway's round. */
  round(): Promise<void> {
    return this.#rollOuts.run();
  }

  /** Makes a version active by a single worker. */
  async active(version: string): Promise<void> {
    await this.deploy(version);
    await this.report('w1', 'ready');
  }
}

test('the first ready worker activates the first version', async () => {
  const app = new Played();
  expect(await app.deploy(A)).toEqual({ created: true, state: 'building' });
  expect(await app.report('w1', 'preparing')).toBe('current');
  expect(await app.state(A)).toBe('building');
  expect(await app.report('w1', 'ready')).toBe('ended');
  expect(await app.store.deployment(app.project, 'chat')).toEqual({ app: 'chat', active: A });
  expect(await app.store.activations(app.project, 'chat')).toEqual([
    { version: A, time: expect.any(Number), author: 'ada' },
  ]);
});

test('the old version stays active until every live worker is ready', async () => {
  const app = new Played();
  await app.active(A);
  await app.serves('w1');
  await app.serves('w2');
  await app.deploy(B);
  expect(await app.report('w1', 'ready')).toBe('current');
  expect([await app.state(A), await app.state(B)]).toEqual(['active', 'building']);
  expect(await app.report('w2', 'ready')).toBe('ended');
  expect([await app.state(A), await app.state(B)]).toEqual(['retired', 'active']);
});

test('a worker whose lease has ended is not waited for', async () => {
  const app = new Played();
  await app.active(A);
  await app.serves('w1');
  await app.serves('dead');
  await app.deploy(B);
  await app.report('w1', 'ready');
  await app.round();
  expect(await app.state(B)).toBe('building');
  await app.serves('dead', -1);
  await app.round();
  expect(await app.state(B)).toBe('active');
});

test('a roll-out is not ended by a ready worker that has died', async () => {
  const app = new Played();
  await app.active(A);
  await app.serves('w1', -1);
  await app.serves('w2');
  await app.deploy(B);
  await app.report('w1', 'ready');
  await app.serves('w2', -1);
  await app.round();
  expect(await app.state(B)).toBe('building');
});

test('a failed start undoes the roll-out, and the old version stays active', async () => {
  const app = new Played();
  await app.active(A);
  await app.deploy(B);
  expect(await app.report('w1', 'failed', { reason: 'no module x' })).toBe('ended');
  expect(await app.store.find(app.project, 'chat', B)).toMatchObject({
    state: 'failed',
    rollingOut: false,
    reason: 'no module x',
  });
  expect(await app.state(A)).toBe('active');
  expect(await app.activate(B)).toBe('failed');
  expect((await app.store.deployment(app.project, 'chat')).rollOut).toBeUndefined();
});

test('after its end time, a roll-out is undone with the worker and its reason', async () => {
  const app = new Played();
  await app.active(A);
  await app.serves('w1');
  await app.deploy(B, 'activate', -1);
  await app.report('w1', 'preparing').catch(() => {});
  await app.round();
  expect(await app.store.find(app.project, 'chat', B)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('w1'),
  });
  await app.deploy(B, 'activate', -1);
  await app.report('w1', 'waiting', { reason: 'the store is away' });
  expect((await app.store.find(app.project, 'chat', B))?.reason).toContain('the store is away');
});

test('a version that was ready before keeps its state when its roll-out is undone', async () => {
  const app = new Played();
  await app.active(A);
  await app.active(B);
  expect(await app.activate(A)).toBe('retired');
  await app.report('w1', 'failed', { reason: 'broken disk' });
  expect(await app.store.find(app.project, 'chat', A)).toMatchObject({ state: 'retired', reason: 'broken disk' });
  expect(await app.state(B)).toBe('active');
});

test('a repeated deployment and a repeated report change nothing', async () => {
  const app = new Played();
  await app.deploy(A);
  const target = await app.rollOut();
  expect(await app.deploy(A)).toEqual({ created: false, state: 'building' });
  expect(await app.rollOut()).toEqual(target);
  const twice = { number: 1, lines: [{ time: 't', text: 'once' }] };
  await app.report('w1', 'preparing', twice);
  await app.report('w1', 'preparing', twice);
  expect((await app.store.log(app.project, 'chat', A)).lines).toEqual(twice.lines);
  await app.reportOf(target, 'w1', 'ready');
  expect(await app.reportOf(target, 'w1', 'ready')).toBe('stale');
  expect(await app.store.activations(app.project, 'chat')).toHaveLength(1);
  expect(await app.deploy(A)).toEqual({ created: false, state: 'active' });
});

test('a report of an earlier roll-out changes nothing', async () => {
  const app = new Played();
  await app.deploy(A);
  const first = await app.rollOut();
  await app.deploy(B);
  expect(await app.store.find(app.project, 'chat', A)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('replaced'),
  });
  expect(await app.reportOf(first, 'w1', 'ready')).toBe('stale');
  expect([await app.state(A), await app.state(B)]).toEqual(['failed', 'building']);
});

test('a build makes a version ready, and a later activation makes it active', async () => {
  const app = new Played();
  await app.active(A);
  await app.deploy(B, 'build');
  await app.report('w1', 'ready');
  expect([await app.state(A), await app.state(B)]).toEqual(['active', 'ready']);
  expect(await app.activate(B)).toBe('ready');
  await app.report('w1', 'ready');
  expect(await app.state(B)).toBe('active');
});

test('a version is found by the beginning of its name, if only one version begins so', async () => {
  const app = new Played();
  const similar = `${'a'.repeat(63)}b`;
  await app.deploy(A);
  expect((await app.store.find(app.project, 'chat', 'aaaaaaaa'))?.version).toBe(A);
  await app.deploy(similar);
  await expect(app.store.find(app.project, 'chat', 'aaaaaaaa')).rejects.toMatchObject({ code: 'conflict' });
  expect((await app.store.find(app.project, 'chat', A))?.version).toBe(A);
  for (const name of ['aaaaaaa', 'bbbbbbbb', 'AAAAAAAA', '*'])
    expect(await app.store.find(app.project, 'chat', name)).toBeUndefined();
});

test('the log keeps the newest thousand lines, and a reader continues behind them', async () => {
  const app = new Played();
  await app.deploy(A);
  const lines = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => ({ time: 't', text: `line ${from + n}` }));
  await app.report('w1', 'preparing', { lines: lines(0, 900) });
  await app.report('w1', 'preparing', { lines: lines(900, 200) });
  const { lines: kept, cut, total } = await app.store.log(app.project, 'chat', A);
  expect([kept.length, cut, total, kept[0]?.text]).toEqual([1000, 100, 1100, 'line 100']);
  expect((await app.store.log(app.project, 'chat', A, 1099)).lines.map(({ text }) => text)).toEqual(['line 1099']);
});

test('a deleted app has no versions, and a late report does not bring it back', async () => {
  const app = new Played();
  await app.deploy(A);
  const target = await app.rollOut();
  expect(await app.store.delete(app.project, 'chat')).toBe(true);
  expect(await app.reportOf(target, 'w1', 'ready')).toBe('stale');
  expect(await app.store.apps(app.project)).toEqual([]);
  expect(await app.state(A)).toBeUndefined();
  expect(await app.store.delete(app.project, 'chat')).toBe(false);
  // For a day, the queued runs of the app end as `not_found`.
  expect(await redis.keys(`${projectPrefix(app.project)}*`)).toEqual([`${projectPrefix(app.project)}removed:chat`]);
});

test('what the service undoes is in the audit log, and a gateway learns of it once', async () => {
  const app = new Played();
  await app.active(A);
  await app.deploy(B);
  await app.report('w1', 'failed', { reason: 'no module "x"' });
  await app.deploy(nameOf('c'), 'activate', -1);
  await app.round();
  await app.round();
  const entry = { time: expect.stringMatching(/^20.*Z$/), sub: 'service', action: 'version.undo', address: '' };
  const entries = [
    { ...entry, target: 'chat@cccccccccccc', reason: 'No worker was ready in time; see its log.' },
    { ...entry, target: 'chat@bbbbbbbbbbbb', reason: 'no module "x"' },
  ];
  expect(await app.store.audited(app.project, 0, 10)).toEqual(entries);
  expect(app.undone).toEqual(entries.reverse());
});

test('an undoing by a person has no entry of the service', async () => {
  const app = new Played();
  await app.active(A);
  await app.deploy(B);
  await app.activate(A);
  await app.round();
  expect(await app.store.audited(app.project, 0, 10)).toEqual([]);
});
