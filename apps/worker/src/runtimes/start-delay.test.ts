// Contract 8: the delays before a process is started again.
import { expect, test } from '@jest/globals';
import { startDelayMs } from './start-delay.ts';

test('failed starts are repeated after 1, 2, 4 … 60 seconds', () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8].map((n) => startDelayMs(n, 0) / 1000)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
});

test('a crashed process is replaced at once, with growing delays if it crashes again and again', () => {
  expect([0, 1, 2, 3, 20].map((n) => startDelayMs(0, n))).toEqual([0, 0, 100, 200, 60_000]);
});
