// Plays the store under random interleavings of callers, workers, faults and deaths. A model that knows only the contract judges each round.
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type PlantedBug, plant, plantedBugs } from './planted-bugs.ts';
import { playRound } from './round.ts';
import { type Step, schedule } from './schedule.ts';

/** Number of rounds, and the seed to repeat a schedule. The machine still chooses the timing. */
const ROUNDS = Number(process.env.STORE_ROUNDS ?? 60);
const SEED = Number(process.env.STORE_SEED ?? Date.now() % 2 ** 31);
/** Number of rounds side by side, each in a separate database. */
const LANES = 3;
/** A planted bug must fail within this many rounds. */
const BUG_ROUNDS = 24;
const BUG_LANES = 6;
/** Limit for coming to rest, because a round with a bug may never come to rest. */
const BUG_REST_MS = 1_500;

let redis: TestRedis;
let lasting: TestRedis;
beforeAll(async () => {
  [redis, lasting] = await Promise.all([testRedis(), testRedis({ persist: true })]);
});
afterAll(async () => {
  await redis.stop();
  await lasting.stop();
});

const report = (wrong: readonly string[], steps: readonly Step[]): string =>
  `${wrong.join('\n')}\n\nthe schedule:\n${steps.map((step) => JSON.stringify(step)).join('\n')}`;

test('after any events: one outcome per run, every item once and in order, no lost run, an end for every reader', async () => {
  let played = 0;
  const lane = async (db: number): Promise<void> => {
    // Lane 0 also pauses and restarts Redis, which affects every lane of a server. So lane 0 has its own server.
    const ground = { redis: db === 0 ? lasting : redis, db };
    await fc.assert(
      fc.asyncProperty(schedule(db === 0 ? 'whole' : 'services'), async (steps) => {
        const wrong = await playRound(ground, steps);
        played++;
        if (wrong.length > 0) throw new Error(report(wrong, steps));
      }),
      // A schedule is not shrunk: each run has other timings, and one round costs a second.
      { numRuns: Math.ceil(ROUNDS / LANES), seed: SEED + db, endOnFailure: true },
    );
  };
  const lanes = await Promise.allSettled(Array.from({ length: LANES }, (_, db) => lane(db)));
  process.stderr.write(`store property: ${played} rounds, seed ${SEED} (STORE_ROUNDS, STORE_SEED)\n`);
  for (const result of lanes) if (result.status === 'rejected') throw result.reason;
}, 600_000);

/** Returns the number of rounds until the model finds the bug. */
async function roundsUntilSeen(bug: PlantedBug, db: number): Promise<number> {
  const scripts = plant(bug);
  const random = fc.sample(schedule('services'), { numRuns: BUG_ROUNDS, seed: SEED });
  for (let round = 0; round < BUG_ROUNDS; round++) {
    // The first rounds have only the bait. Later rounds mix the bait with other steps.
    const around = round < 4 ? [] : (random[round] as Step[]);
    const half = around.length >> 1;
    const steps = [...around.slice(0, half), ...bug.bait, ...around.slice(half)];
    const wrong = await playRound({ redis, db }, steps, scripts, BUG_REST_MS);
    if (wrong.length > 0) return round + 1;
  }
  return Number.POSITIVE_INFINITY;
}

test('the model finds each planted bug', async () => {
  const waiting = [...plantedBugs];
  const unseen: string[] = [];
  const lane = async (db: number): Promise<void> => {
    for (let bug = waiting.shift(); bug; bug = waiting.shift()) {
      const rounds = await roundsUntilSeen(bug, db);
      process.stderr.write(`planted: ${bug.name}: seen in round ${rounds}\n`);
      if (rounds > BUG_ROUNDS) unseen.push(bug.name);
    }
  };
  await Promise.all(Array.from({ length: BUG_LANES }, (_, at) => lane(LANES + at)));
  expect(unseen).toEqual([]);
}, 600_000);

test('the baits without their bugs fail no round', async () => {
  const wrong: string[] = [];
  const waiting = [...plantedBugs];
  const lane = async (db: number): Promise<void> => {
    for (let bug = waiting.shift(); bug; bug = waiting.shift()) {
      for (const text of await playRound({ redis, db }, bug.bait)) wrong.push(`${bug.name}: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: BUG_LANES }, (_, at) => lane(LANES + at)));
  expect(wrong).toEqual([]);
}, 600_000);
