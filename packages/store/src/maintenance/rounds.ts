// Repeats the periodic tasks of a service: one round of a task at a time, and services that started together at different moments.
import { pause } from '@inference-proxy/retry';

/** A task that is repeated. */
export interface Task {
  /** Time between the starts of two rounds, ms. */
  readonly everyMs: number;
  /** The first round starts at once. Otherwise it starts at a random moment of the first period. */
  readonly atOnce?: boolean;
  /** Does the work of one round. Never rejects, because the next round repeats the work. */
  run(): Promise<void>;
}

export class Rounds {
  #ending: AbortController | undefined;

  readonly #tasks: readonly Task[];

  constructor(tasks: readonly Task[]) {
    this.#tasks = tasks;
  }

  start(): void {
    if (this.#ending) return;
    this.#ending = new AbortController();
    for (const task of this.#tasks) void repeat(task, this.#ending.signal);
  }

  /** Starts no more rounds. A round that is under way continues. */
  stop(): void {
    this.#ending?.abort();
    this.#ending = undefined;
  }
}

/** Each task has its own rounds, because a long round of one task must not delay another task: a late reap counts as a pause of Redis. */
async function repeat(task: Task, signal: AbortSignal): Promise<void> {
  const { everyMs, atOnce = false } = task;
  // Gateways that started together would otherwise visit Redis together for ever.
  let next = performance.now() + (atOnce ? 0 : Math.random() * everyMs);
  for (;;) {
    const waitMs = next - performance.now();
    if (waitMs > 0) await pause(waitMs, signal);
    if (signal.aborted) return;
    await task.run();
    // A round that lasted longer than a period delays the following rounds. Missed rounds are not repeated.
    next = Math.max(next + everyMs, performance.now());
  }
}
