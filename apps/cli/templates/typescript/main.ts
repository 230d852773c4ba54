// The app's functions. Every exported function is callable: POST /v4/<project>/<app>/<function>.
import { setTimeout as pause } from 'node:timers/promises';

/** Returns a greeting: one answer. */
export function greet({ name = 'world' }: { name?: string }) {
  return { greeting: `Hello, ${name}!` };
}

/** Yields numbers: a caller of a stream receives each item at once. */
export async function* count({ upper_range = 3 }: { upper_range?: number }, { signal }: { signal: AbortSignal }) {
  for (let number = 0; number < upper_range; number++) {
    yield `Number ${number}`;
    await pause(200, undefined, { signal });
  }
}
