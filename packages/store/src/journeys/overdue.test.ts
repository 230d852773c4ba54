// Contract 2, `expired`, and Contract 1, "Disconnects": one round of reap ends any number of overdue runs.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { NewRun } from '../index.ts';
import { ProjectIndex } from '../maintenance/project-index.ts';
import { Reaper } from '../maintenance/reaper.ts';
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
  const logger = { warn: () => {}, error: () => {} };
  const projects = new ProjectIndex(store.admin, defaultTimings.commandMs);
  const reaper = new Reaper({ redis: store.admin, logger, timings: defaultTimings, projects }, store.deliveries);
  // The first round gives every lease a fresh term.
  await gateway.acceptor.accept(call(state), 'none').accepted;
  await reaper.run();
  const runs = Array.from({ length: COUNT }, () => call(state, more));
  await Promise.all(runs.map((run) => gateway.acceptor.accept(run, 'none').accepted));
  await reaper.run();
  const states = await Promise.all(runs.map(async ({ runId }) => (await gateway.lookUp(state, runId))?.state));
  expect(new Set(states)).toEqual(new Set([state]));
});
