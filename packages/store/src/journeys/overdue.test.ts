// Contract 2, `expired`, and Contract 1, "Disconnects": one round of reap ends any number of overdue runs.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { NewRun } from '../index.ts';
import { Reaper } from '../runs/reaper.ts';
import { defaultTimings } from '../timings.ts';
import { call, RealStore } from './real-store.ts';

let store: RealStore;
beforeAll(async () => {
  store = await RealStore.open();
});
afterAll(() => store.close());

const COUNT = 1_500;

test.each<[string, Partial<NewRun>]>([
  ['expired', { queueTimeoutMs: 0 }],
  ['cancelled', { absentMs: 1, promised: true }],
])('one round of reap ends all overdue runs as %s', async (state, more) => {
  const gateway = store.gateway(`of-${state}`);
  const reaper = new Reaper(store.admin, store.deliveries, { warn: () => {}, error: () => {} }, defaultTimings);
  // The first round gives every lease a fresh term.
  await gateway.accept(call(state), 'none').accepted;
  await reaper.once();
  const runs = Array.from({ length: COUNT }, () => call(state, more));
  await Promise.all(runs.map((run) => gateway.accept(run, 'none').accepted));
  await reaper.once();
  const states = await Promise.all(runs.map(async ({ runId }) => (await gateway.look(state, runId))?.state));
  expect(new Set(states)).toEqual(new Set([state]));
});
