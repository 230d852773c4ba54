// Gateways and the index of projects keep nothing about projects that are no longer used.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { INDEX_MS, names, projectPrefix, projectsKey } from '../keys.ts';
import { call, RealStore, succeed, takeOne, until } from './real-store.ts';

const timings = { attendMs: 20, reapMs: 20, leaseMs: 300, pauseMs: 60_000 };
let store: RealStore;
beforeEach(async () => {
  store = await RealStore.open();
});
afterEach(() => store.close());

const channel = (project: string, gateway: string): string => `${projectPrefix(project)}${names.toGateway}${gateway}`;
const channels = async (): Promise<string[]> => (await store.admin.call('PUBSUB', 'SHARDCHANNELS')) as string[];

test('a gateway unsubscribes from a project without readers, and subscribes again for the next reader', async () => {
  const gateway = store.gateway('g1', { timings });
  gateway.start();
  const read = call('read', { absentMs: 0 });
  const reading = gateway.acceptor.accept(read, 'items');
  await reading.accepted;
  // A token for all projects may name any project.
  for (const project of ['no1', 'no2', 'no3']) {
    const reader = gateway.read(project, call(project).runId, 'outcome', 0);
    await expect(reader.outcome()).rejects.toThrow();
    reader.close();
  }
  await until(async () => (await channels()).length === 1);
  expect(await channels()).toEqual([channel('read', 'g1')]);
  reading.reader?.close();
  await until(async () => (await channels()).length === 0);
  const worker = await store.worker('w1', 'read');
  const { accepted, reader } = gateway.acceptor.accept(call('read'), 'outcome');
  const outcome = reader?.outcome();
  await accepted;
  await succeed(worker, await takeOne(worker, 'read'), 0, '"heard"');
  expect((await outcome)?.result?.toString()).toBe('"heard"');
});

test(
  'a project without runs, apps, workers and gateways leaves the index, and its next use adds it again',
  async () => {
    const gateway = store.gateway('g1', { timings });
    const worker = await store.worker('w1', 'gone');
    await worker.announce('deployed', {
      ...{ app: 'hello', kind: 'functions', state: 'ready', version: '1', functions: [], preformatted: true },
      ...{ queueLimit: 1, queueTimeoutMs: 1 },
    });
    await gateway.acceptor.accept(call('gone', { keepMs: 0 }), 'none').accepted;
    await succeed(worker, await takeOne(worker, 'gone'), 0);
    // The worker is gone, too.
    await store.admin.del(`${projectPrefix('gone')}workers`);
    gateway.start();
    await until(async () => (await store.admin.zrange(projectsKey, '0', '-1')).join() === 'deployed');
    // The counters of ended runs stay for a day.
    const isCounter = (key: string) => /:(stats:|counted-apps)/.test(key);
    const keys = async () => (await store.admin.keys(`${projectPrefix('gone')}*`)).filter((key) => !isCounter(key));
    await until(async () => (await keys()).length <= 2);
    await gateway.acceptor.accept(call('gone'), 'none').accepted;
    expect(await store.admin.zrange(projectsKey, '0', '-1')).toEqual(['deployed', 'gone']);
  },
  12 * INDEX_MS,
);
