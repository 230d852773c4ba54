// The pauses between the tries of one call: they double, and they differ between callers.

export interface BackOffTimes {
  /** Longest pause before the second try, ms. */
  readonly firstMs: number;
  /** Longest of all pauses, ms. If absent, pauses do not grow. */
  readonly lastMs?: number;
}

/** Part of a pause that is random. Callers that failed together (Redis went away) then do not return together. */
const RANDOM = 0.5;

/** Counts the failures of one call. `retry` uses it. Use it directly only in a state machine that has other events beside its retries. */
export class BackOff {
  #ms: number;

  readonly #times: BackOffTimes;

  constructor(times: BackOffTimes) {
    this.#times = times;
    this.#ms = times.firstMs;
  }

  /** Returns the pause before the next try, ms. Each call doubles the following pause. */
  next(): number {
    const { firstMs, lastMs = firstMs } = this.#times;
    const ms = this.#ms;
    this.#ms = Math.min(ms * 2, lastMs);
    return ms * (1 - RANDOM * Math.random());
  }

  /** Records a success. The next pause is the first one again. */
  reset(): void {
    this.#ms = this.#times.firstMs;
  }
}
