// runtimes: how long a process that ended is waited with before the next is started.

const FIRST_MS = 1_000;
const CRASH_FIRST_MS = 100;
const LAST_MS = 60_000;

const doubling = (first: number, times: number): number => Math.min(first * 2 ** Math.max(0, times - 1), LAST_MS);

/**
 * 1, 2, 4 … 60 s after starts that failed in a row. A process that had served is replaced at once, and only
 * one that never ended a run properly before it crashed again is waited with.
 *
 * @param failedStarts starts without success since the last successful one
 * @param crashes processes that were ready and crashed, in a row
 */
export function startDelayMs(failedStarts: number, crashes: number): number {
  if (failedStarts > 0) return doubling(FIRST_MS, failedStarts);
  return crashes > 1 ? doubling(CRASH_FIRST_MS, crashes - 1) : 0;
}
