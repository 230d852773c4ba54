// Decides which wakes of a project's queues cause a take. A wake that a take has overtaken does not. Times are the store's, µs.

/** A wake from at most this long before a take's answer is outdated. An older wake comes from a clock that has stepped back, so it counts. */
const OUTDATED_US = 1_000_000;

export class Wakes {
  /** By queue: time of the last answer to a take that asked for the queue. Earlier wakes are outdated. */
  readonly #answered = new Map<string, number>();
  /** The queues of the take that is under way. */
  #asked: ReadonlySet<string> = new Set();
  /** By queue: time of a wake that came during a take. It is compared with the take's answer. */
  readonly #during = new Map<string, number>();

  readonly #onWake: (queue: string) => void;

  /** @param onWake called for each wake that is not outdated */
  constructor(onWake: (queue: string) => void) {
    this.#onWake = onWake;
  }

  /** A take of these queues begins. */
  asks(queues: Iterable<string>): void {
    this.#asked = new Set(queues);
  }

  /** The take was answered at this time. */
  answered(at: number): void {
    for (const queue of this.#asked) this.#answered.set(queue, at);
    this.#asked = new Set();
    const during = [...this.#during];
    this.#during.clear();
    for (const [queue, wokenAt] of during) this.woken(queue, wokenAt);
  }

  /** A wake of this time came. */
  woken(queue: string, at: number): void {
    if (this.#asked.has(queue)) {
      this.#during.set(queue, at);
      return;
    }
    const age = (this.#answered.get(queue) ?? 0) - at;
    if (age <= 0 || age > OUTDATED_US) this.#onWake(queue);
  }
}
