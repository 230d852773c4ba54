// Contract 9: the shares of several projects in the run store, as callers and workers see them.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type GatewayStore, overShare, type WorkerStore } from '../index.ts';
import { call, RealStore, succeed, takeOne, until } from './real-store.ts';

const MIB = 1024 * 1024;
const BOUND = 8 * MIB;
const timings = { reapMs: 20, attendMs: 50 };
let store: RealStore;
let gateway: GatewayStore;
beforeEach(async () => {
  store = await RealStore.open();
  gateway = store.gateway('g1', { timings, storeMaxBytes: BOUND });
  gateway.start();
  await until(async () => (await gateway.depths()).store.boundBytes === BOUND);
});
afterEach(() => store.close());

const large = (bytes: number): string => `"${'x'.repeat(bytes)}"`;

/** Accepts a run that returns `bytes` bytes. @returns the answer to its end, and its id */
async function returns(
  worker: WorkerStore,
  project: string,
  bytes: number,
  promised = true,
): Promise<[string, string]> {
  const run = call(project, { promised });
  await gateway.acceptor.accept(run, 'none').accepted;
  const taken = await takeOne(worker, project);
  return [(await succeed(worker, taken, 0, large(bytes))).state, run.runId];
}

test('results that exceed the share end as output_too_large, and the other project keeps its minimum', async () => {
  const [greedy, modest] = [await store.worker('w1', 'greedy'), await store.worker('w2', 'modest')];
  await returns(modest, 'modest', 10);
  await until(async () => (await gateway.depths()).projects.length === 1);
  const ends: [string, string][] = [];
  for (let n = 0; n < 8; n++) ends.push(await returns(greedy, 'greedy', MIB));
  const refused = ends.filter(([state]) => state === 'refused');
  expect(refused.length).toBeGreaterThan(3);
  for (const [state, id] of ends)
    expect((await gateway.lookUp('greedy', id))?.outcome?.error).toEqual(state === 'refused' ? overShare : undefined);
  const { projects } = await gateway.depths();
  expect(projects.find(({ project }) => project === 'greedy')?.bytes).toBeLessThanOrEqual(BOUND / 2);
  expect((await returns(modest, 'modest', 1.5 * MIB))[0]).toBe('ended');
});

test('unpromised ended runs make room for a large promised result', async () => {
  const worker = await store.worker('w1', 'demo');
  for (let n = 0; n < 15; n++) expect((await returns(worker, 'demo', MIB / 3, false))[0]).toBe('ended');
  expect((await returns(worker, 'demo', 6 * MIB))[0]).toBe('ended');
  expect((await gateway.depths()).projects[0]?.bytes).toBeLessThanOrEqual(BOUND);
});
