// Reports a lost gateway, and finds out when the gateway answers again.
import { signal } from '@preact/signals';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

/** Whether the last request reached the gateway. */
export const lost = signal(false);

/** Grows with each recovery. Views that depend on it load again. */
export const recoveries = signal(0);

/** Called after a request without an answer. The first call starts to look for the gateway. */
export function reportLoss(): void {
  if (lost.peek()) return;
  lost.value = true;
  look(FIRST_PAUSE_MS);
}

function look(pauseMs: number): void {
  setTimeout(async () => {
    const answer = await fetch('/readyz', { cache: 'no-store' }).catch(() => undefined);
    if (answer?.ok) {
      lost.value = false;
      recoveries.value += 1;
    } else look(Math.min(pauseMs * 2, LONGEST_PAUSE_MS));
  }, pauseMs);
}
