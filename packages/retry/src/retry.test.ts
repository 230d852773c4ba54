// Repeated calls: when they are repeated, when they end, and with which error.
import { expect, jest, test } from '@jest/globals';
import { atIntervals, backOffMs, pause, retry } from './index.ts';

/** Returns a task that fails `times` times. */
const failing = (times: number) => {
  let tries = 0;
  return jest.fn(async () => {
    if (tries++ < times) throw new Error(`try ${tries}`);
    return 'done';
  });
};

test('a call that succeeds is made once', async () => {
  const task = failing(0);
  expect(await retry(task, { firstMs: 1 })).toBe('done');
  expect(task).toHaveBeenCalledTimes(1);
});

test('a failed call is repeated until it succeeds, and each failure is reported', async () => {
  const failed = jest.fn();
  expect(await retry(failing(3), { firstMs: 1, failed })).toBe('done');
  expect(failed.mock.calls).toEqual([[new Error('try 1')], [new Error('try 2')], [new Error('try 3')]]);
});

test('a signal ends the pause, and the call rejects with its last error', async () => {
  const owner = new AbortController();
  const task = failing(Number.POSITIVE_INFINITY);
  const failed = (): void => void setImmediate(() => owner.abort());
  await expect(retry(task, { firstMs: 3_600_000, signal: owner.signal, failed })).rejects.toThrow('try 1');
  expect(task).toHaveBeenCalledTimes(1);
});

test('the result of a try counts, even if the signal fired during the try', async () => {
  const owner = new AbortController();
  const task = async (): Promise<string> => {
    owner.abort();
    return 'done';
  };
  expect(await retry(task, { firstMs: 1, signal: owner.signal })).toBe('done');
});

test('after its signal, nothing is tried', async () => {
  const task = failing(0);
  const over = AbortSignal.abort(new Error('the owner has ended'));
  await expect(retry(task, { firstMs: 1, signal: over })).rejects.toThrow('the owner has ended');
  expect(task).not.toHaveBeenCalled();
});

test('an error that is not repeated ends the retries', async () => {
  const task = failing(5);
  const failed = (error: unknown): never => {
    throw error;
  };
  await expect(retry(task, { firstMs: 1, failed })).rejects.toThrow('try 1');
  expect(task).toHaveBeenCalledTimes(1);
});

test('pauses double up to the longest pause, and at most half of each is random', () => {
  for (const [at, longest] of [100, 200, 300, 300].entries()) {
    const ms = backOffMs(at + 1, { firstMs: 100, lastMs: 300 });
    expect(ms).toBeLessThanOrEqual(longest);
    expect(ms).toBeGreaterThanOrEqual(longest / 2);
  }
  expect(backOffMs(9, { firstMs: 100 })).toBeLessThanOrEqual(100);
});

test('a pause ends at once if its signal has fired', async () => {
  await pause(3_600_000, AbortSignal.abort());
});

test('a look at intervals is repeated until its signal fires, and never overlaps the look before', async () => {
  const owner = new AbortController();
  let open = 0;
  let looks = 0;
  await atIntervals(1, owner.signal, async () => {
    expect(open++).toBe(0);
    await pause(2);
    open--;
    if (++looks === 3) owner.abort();
  });
  expect(looks).toBe(3);
});
