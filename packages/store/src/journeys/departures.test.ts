// Contract 1, "Disconnects": the store knows the readers of any number of runs, even after lost messages.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { GatewayStore, RunReader } from '../index.ts';
import { names, projectPrefix } from '../keys.ts';
import { append, call, collect, RealStore, succeed, takeOne, until } from './real-store.ts';

/** The first reap of a project gives every lease a fresh term. */
const timings = { attendMs: 40, reapMs: 50, leaseMs: 1_000 };
let store: RealStore;
beforeAll(async () => {
  store = await RealStore.open();
});
afterAll(() => store.close());

const state = async (gateway: GatewayStore, project: string, runId: string) =>
  (await gateway.lookUp(project, runId))?.state;

test('a run is cancelled only after its last reader has disconnected, on any gateway', async () => {
  const project = 'two';
  const [here, there] = [store.gateway('g1'), store.gateway('g2')];
  const run = call(project, { absentMs: 0 });
  const { accepted, reader } = here.acceptor.accept(run, 'items');
  await accepted;
  const [second, third] = [there.read(project, run.runId, 'items', 0), there.read(project, run.runId, 'items', 0)];
  for (const each of [second, third]) each.events().subscribe();
  const followers = () => store.admin.hget(`${projectPrefix(project)}run:${run.runId}`, 'followers');
  // All readers of a gateway are one follower.
  await until(async () => (await followers()) === 'g1:i g2:i');
  (reader as RunReader).close();
  await until(async () => (await followers()) === 'g2:i');
  second.close();
  expect(await state(here, project, run.runId)).toBe('queued');
  third.close();
  await until(async () => (await state(here, project, run.runId)) === 'cancelled');
});

test('a reader that arrives in time on another gateway keeps the run, and its disconnect counts again', async () => {
  const project = 'back';
  const [here, there] = [store.gateway('g3', { timings }), store.gateway('g4', { timings })];
  here.start();
  there.start();
  const run = call(project, { absentMs: 400, promised: true });
  const { accepted, reader } = here.acceptor.accept(run, 'items');
  await accepted;
  (reader as RunReader).close();
  const absent = () => store.admin.zscore(`${projectPrefix(project)}absent`, run.runId);
  await until(async () => (await absent()) !== null);
  const second = there.read(project, run.runId, 'outcome', 0);
  const outcome = second.outcome();
  await until(async () => (await absent()) === null);
  second.close();
  void outcome.catch(() => undefined);
  await until(async () => (await state(here, project, run.runId)) === 'cancelled');
});

test('a gateway notices its own lost departure', async () => {
  const project = 'lost';
  const gateway = store.gateway('g5', { timings });
  gateway.start();
  const run = call(project, { absentMs: 0 });
  await gateway.acceptor.accept(run, 'none').accepted;
  // The state after a reader whose departure was lost.
  await store.admin.hset(`${projectPrefix(project)}run:${run.runId}`, 'followers', 'g5:i');
  await store.admin.sadd(`${projectPrefix(project)}${names.following}g5`, run.runId);
  await until(async () => (await state(gateway, project, run.runId)) === 'cancelled');
});

test('the departure from an ended run is reported with the next round', async () => {
  const project = 'finished';
  const gateway = store.gateway('g7', { timings });
  const worker = await store.worker('w7', project);
  const { accepted, reader } = gateway.acceptor.accept(call(project), 'items');
  await accepted;
  const read = collect(reader as RunReader);
  const run = await takeOne(worker, project);
  await append(worker, run, 1, 'one');
  await succeed(worker, run, 1);
  await read;
  (reader as RunReader).close();
  const isRead = async () =>
    (await store.admin.zscore(`${projectPrefix(project)}${names.reading}`, run.runId)) !== null;
  expect(await isRead()).toBe(true);
  gateway.start();
  await until(async () => !(await isRead()));
});

test('a gateway attends thousands of readers, in calls of a bounded size', async () => {
  const project = 'thousands';
  const gateway = store.gateway('g6', { timings });
  const runs = Array.from({ length: 4_500 }, () => call(project));
  await Promise.all(runs.map((run) => gateway.acceptor.accept(run, 'outcome').accepted));
  const following = `${projectPrefix(project)}${names.following}g6`;
  expect(await store.admin.scard(following)).toBe(4_500);
  // The state after an expired lease: the store has no follower.
  await store.admin.del(following);
  const pipeline = store.admin.pipeline();
  for (const { runId } of runs) pipeline.hdel(`${projectPrefix(project)}run:${runId}`, 'followers');
  await pipeline.exec();
  gateway.start();
  await until(async () => (await store.admin.scard(following)) === 4_500);
  expect(await state(gateway, project, runs[4_000]?.runId as string)).toBe('queued');
});
