// Contract 8: the delay before the start of the next process after a process ended or did not start.

const FIRST_MS = 1_000;
const CRASH_FIRST_MS = 100;
const LAST_MS = 60_000;

const doubling = (first: number, times: number): number => Math.min(first * 2 ** Math.max(0, times - 1), LAST_MS);

/**
 * Returns 1, 2, 4 … 60 s after consecutive failed starts. A process that had served is replaced at once. Delays follow only
 * if a process crashes again before any run ended properly.
 *
 * @param failedStarts failed starts since the last successful start
 * @param crashes consecutive crashes of ready processes
 */
export function startDelayMs(failedStarts: number, crashes: number): number {
  if (failedStarts > 0) return doubling(FIRST_MS, failedStarts);
  return crashes > 1 ? doubling(CRASH_FIRST_MS, crashes - 1) : 0;
}
