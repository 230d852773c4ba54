// Repeats a call until it succeeds. Every retry loop of the services uses this function.
import { type BackOffTimes, backOffMs } from './back-off.ts';
import { pause } from './pause.ts';

export interface RetryOptions extends BackOffTimes {
  /** Ends the retries. A try that is under way continues, and its result counts. */
  readonly signal?: AbortSignal;
  /**
   * Called after each failed try, before the pause. A logger belongs here: the services' loggers write a repeated line once
   * (`repeatedLines` of the platform). Throws to end the retries.
   */
  readonly failed?: (error: unknown) => void;
}

/**
 * Calls `task` until it succeeds, and returns its value. The pauses double from `firstMs` to `lastMs` and are partly random.
 *
 * @throws the last error of `task` if `signal` fires; the signal's reason if it fired before the first try; anything that `failed` throws
 */
export async function retry<T>(task: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal } = options;
  signal?.throwIfAborted();
  for (let failures = 1; ; failures++) {
    try {
      return await task();
    } catch (error) {
      options.failed?.(error);
      await pause(backOffMs(failures, options), signal);
      if (signal?.aborted) throw error;
    }
  }
}
