// The pauses between the tries of a call. They grow, and they differ between callers.

export interface BackOffTimes {
  /** Longest pause after the first failure, ms. */
  readonly firstMs: number;
  /** Longest of all pauses, ms. If absent, pauses do not grow. */
  readonly lastMs?: number;
}

/** Part of a pause that is random. Callers that failed together (Redis went away) then do not return together. */
const RANDOM = 0.5;

/**
 * Returns the pause before the next try, ms. The pauses double from `firstMs` to `lastMs`.
 *
 * Most callers use `retry`. This function is for state machines in which other events also cause a try.
 * @param failures number of failures in a row, at least 1
 */
export function backOffMs(failures: number, { firstMs, lastMs = firstMs }: BackOffTimes): number {
  return Math.min(firstMs * 2 ** (failures - 1), lastMs) * (1 - RANDOM * Math.random());
}
