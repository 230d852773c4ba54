// Repeats a look at intervals, beside messages that may be lost.
import { pause } from './pause.ts';

/** Calls `look` after each interval until `signal` fires, one call at a time. Rejects only if `look` does. */
export async function atIntervals(ms: number, signal: AbortSignal, look: () => void | Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await pause(ms, signal);
    if (!signal.aborted) await look();
  }
}
