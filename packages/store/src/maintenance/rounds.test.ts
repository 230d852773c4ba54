// Periodic tasks: one round at a time, no missed rounds afterwards, no round after the stop.
import { expect, test } from '@jest/globals';
import { Rounds, type Task } from './rounds.ts';

/** Returns a task with a round every 20 ms, and a promise that resolves when `count` rounds have begun. */
function roundsOf(count: number): { readonly task: Task; readonly passed: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  const run = async (): Promise<void> => {
    if (++begun === count) resolve();
  };
  return { task: { everyMs: 20, run }, passed: promise };
}

test('a round that hangs delays the following rounds, and missed rounds are not repeated', async () => {
  let open = 0;
  let begun = 0;
  const hanging = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const run = async (): Promise<void> => {
    expect(++open).toBe(1);
    if (++begun === 1) await hanging.promise;
    else second.resolve();
    open--;
  };
  const neighbour = roundsOf(5);
  const rounds = new Rounds([{ everyMs: 20, atOnce: true, run }, neighbour.task]);
  rounds.start();
  await neighbour.passed;
  expect(begun).toBe(1);
  hanging.resolve();
  await second.promise;
  rounds.stop();
  expect(begun).toBe(2);
});

test('tasks do not wait for each other, and no round begins after the stop', async () => {
  const never = new Promise<void>(() => {});
  const third = Promise.withResolvers<void>();
  let begun = 0;
  const run = async (): Promise<void> => {
    if (++begun === 3) third.resolve();
  };
  const rounds = new Rounds([
    { everyMs: 1, atOnce: true, run: () => never },
    { everyMs: 1, run },
  ]);
  rounds.start();
  await third.promise;
  rounds.stop();
  const atStop = begun;
  const others = roundsOf(20);
  const later = new Rounds([others.task]);
  later.start();
  await others.passed;
  later.stop();
  expect(begun).toBe(atStop);
});
