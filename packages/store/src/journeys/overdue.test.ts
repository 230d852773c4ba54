// Contract 2, `expired`, and 1, `onDisconnect`: whose time is up is told so at once, however many there are.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { NewRun } from '../index.ts';
import { Reaper } from '../runs/reaper.ts';
import { defaultTimings } from '../timings.ts';
import { call, RealStore } from './real-store.ts';

// They wait for events; a busy machine may take its time.
let store: RealStore;
beforeAll(async () => {
  store = await RealStore.open();
});
afterAll(() => store.close());

const COUNT = 1_500;

test.each<[string, Partial<NewRun>]>([
  ['expired', { queueTimeoutMs: 0 }],
  ['cancelled', { absentMs: 1, promised: true }],
])('one round of reap ends them all as %s', async (state, more) => {
  const gateway = store.gateway(`of-${state}`);
  const reaper = new Reaper(store.admin, store.deliveries, { warn: () => {}, error: () => {} }, defaultTimings);
  // The first round gives everything a fresh term.
  await gateway.accept(call(state), 'none').accepted;
  await reaper.once();
  const runs = Array.from({ length: COUNT }, () => call(state, more));
  await Promise.all(runs.map((run) => gateway.accept(run, 'none').accepted));
  await reaper.once();
  const states = await Promise.all(runs.map(async ({ runId }) => (await gateway.look(state, runId))?.state));
  expect(new Set(states)).toEqual(new Set([state]));
});
