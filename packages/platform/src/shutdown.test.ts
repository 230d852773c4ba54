// Contract 6: the phases of a stop.
import { expect, test } from '@jest/globals';
import { createLogger } from './logging.ts';
import { deadlinesFor, longestStopMs, phases, Shutdown } from './shutdown.ts';

const logger = createLogger({ name: 'test', level: 'silent' });

function recording(deadlines = {}) {
  const exits: number[] = [];
  const done: string[] = [];
  const shutdown = new Shutdown({ logger, deadlines, exit: (code) => void exits.push(code) });
  const step = (name: string) => () => void done.push(name);
  return { shutdown, exits, done, step };
}

test('phases run in their fixed order with Redis last, for any order of adding', async () => {
  const { shutdown, done, step } = recording();
  for (const phase of ['redis', 'flush', 'drain', 'unready', 'queues', 'intake'] as const)
    shutdown.add(phase, phase, step(phase));
  expect(await shutdown.stop('test')).toBe(true);
  expect(done).toEqual(['unready', 'intake', 'drain', 'queues', 'flush', 'redis']);
});

test('a phase begins when the phase before has ended', async () => {
  const { shutdown, done, step } = recording();
  const drained = Promise.withResolvers<void>();
  shutdown.add('drain', 'slow', async () => {
    await drained.promise;
    done.push('drained');
  });
  shutdown.add('redis', 'redis', step('redis'));
  const stopped = shutdown.stop('test');
  await Promise.resolve();
  expect(done).toEqual([]);
  drained.resolve();
  await stopped;
  expect(done).toEqual(['drained', 'redis']);
});

test('after a step that throws or rejects, the other steps still run', async () => {
  const { shutdown, exits, done, step } = recording();
  shutdown.add('intake', 'throws', () => {
    throw new Error('no');
  });
  shutdown.add('intake', 'beside it', step('beside it'));
  shutdown.add('drain', 'rejects', () => Promise.reject(new Error('no')));
  shutdown.add('redis', 'redis', step('redis'));
  await shutdown.stopAndExit('test');
  expect(done).toEqual(['beside it', 'redis']);
  expect(exits).toEqual([1]);
});

test('the signal of a step that never ends fires at the deadline, and the stop continues', async () => {
  const { shutdown, exits, done, step } = recording({ drain: 5 });
  let received: AbortSignal | undefined;
  shutdown.add('drain', 'hangs', (signal) => {
    received = signal;
    return new Promise(() => {});
  });
  shutdown.add('redis', 'redis', step('redis'));
  await shutdown.stopAndExit('test');
  expect(received?.aborted).toBe(true);
  expect(done).toEqual(['redis']);
  expect(exits).toEqual([1]);
});

test('two requests cause one stop, and a stop without steps succeeds', async () => {
  const { shutdown, done, step } = recording();
  expect(await recording().shutdown.stop('nothing')).toBe(true);
  shutdown.add('drain', 'once', step('once'));
  await Promise.all([shutdown.stop('first'), shutdown.stop('second')]);
  await shutdown.stop('third');
  expect(done).toEqual(['once']);
});

test('the delay is added to the first phase, and the drain phase has time to report interrupted work', () => {
  const limits = deadlinesFor({ delayS: 3, graceS: 60 });
  expect(limits).toEqual({ ...phases, unready: 4000, drain: 65_000 });
  expect(longestStopMs({ delayS: 3, graceS: 60 })).toBe(4000 + 2000 + 65_000 + 5000 + 2000 + 2000);
});
