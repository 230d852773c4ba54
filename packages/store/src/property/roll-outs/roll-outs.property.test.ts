// Contract 7, "Versions": deployments that race with calls, rollbacks, worker deaths and lost replies, over the real scripts. The clock is the
// test's, so a seed repeats a history exactly, and fast-check shrinks a history that fails.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SteppedStore } from '../../lua-tests/stepped-store.ts';
import { versionSteps } from '../../versions/version-steps.ts';
import { history, type Step } from './steps.ts';
import { World } from './world.ts';

/** Number of histories, and the seed to repeat them. */
const ROUNDS = Number(process.env.STORE_ROUNDS ?? 60);
const SEED = Number(process.env.STORE_SEED ?? Date.now() % 2 ** 31);

let server: SteppedStore;
beforeAll(async () => {
  server = await SteppedStore.open();
});
afterAll(() => server.close());

const seen = new Set<string>();

test('no call is lost, only a version that serves executes calls, and each run names its version', async () => {
  process.stderr.write(`roll-outs: ${ROUNDS} histories, seed ${SEED} (STORE_ROUNDS, STORE_SEED)\n`);
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      expect(await new World(server.fresh(), seen).play(steps)).toEqual([]);
    }),
    { numRuns: ROUNDS, seed: SEED, interruptAfterTimeLimit: 300_000 },
  );
}, 400_000);

const work: Step[] = [0, 1, 2].map((worker) => ({ type: 'work', worker }));
const deploy = (version: number, mode: 'activate' | 'build' = 'activate'): Step[] => [
  { type: 'wait', ms: 1_000 },
  { type: 'deploy', version, mode, fate: 'answered' },
];
const activate = (version: number): Step[] => [{ type: 'activate', version, fate: 'answered' }];
const fail: Step[] = [
  { type: 'look', worker: 0 },
  { type: 'report', worker: 0, step: 'failed', fate: 'answered' },
];
/** Takes every step of the table. Only versions with an odd number move calls in steps. */
const WHOLE: readonly Step[] = [
  ...[deploy(0), work, deploy(2), work, activate(0), work, deploy(4, 'build'), work, activate(4), work],
  ...[deploy(1), fail, deploy(3), deploy(0), activate(4), deploy(1), fail, [{ type: 'trim' } as const]],
  ...[deploy(0, 'build'), work, deploy(2, 'build'), work, [{ type: 'trim' } as const]],
].flat();

test('the histories take every step of the table, except the deletion of the app', async () => {
  expect(await new World(server.fresh(), seen).play(WHOLE)).toEqual([]);
  const steps = versionSteps.filter(({ scripts }) => !scripts.includes('app-delete'));
  const taken = (from: string, to: string, script: string): string => `${from} → ${to} by ${script}`;
  const missing = steps.filter(({ from, to, scripts }) => !scripts.some((script) => seen.has(taken(from, to, script))));
  expect(missing).toEqual([]);
});
