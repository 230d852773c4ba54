// Decides which wakes of a project's apps cause a take. A wake that a take has overtaken does not. Times are the store's, µs.

/** A wake from at most this long before a take's answer is outdated. An older wake comes from a clock that has stepped back, so it counts. */
const OUTDATED_US = 1_000_000;

export class Wakes {
  /** By app: time of the last answer to a take that asked for the app. Earlier wakes are outdated. */
  readonly #answered = new Map<string, number>();
  /** The apps of the take that is under way. */
  #asked: ReadonlySet<string> = new Set();
  /** By app: time of a wake that came during a take. It is compared with the take's answer. */
  readonly #during = new Map<string, number>();

  readonly #onWake: (app: string) => void;

  /** @param onWake called for each wake that is not outdated */
  constructor(onWake: (app: string) => void) {
    this.#onWake = onWake;
  }

  /** A take of these apps begins. */
  asks(apps: Iterable<string>): void {
    this.#asked = new Set(apps);
  }

  /** The take was answered at this time. */
  answered(at: number): void {
    for (const app of this.#asked) this.#answered.set(app, at);
    this.#asked = new Set();
    const during = [...this.#during];
    this.#during.clear();
    for (const [app, wokenAt] of during) this.woken(app, wokenAt);
  }

  /** A wake of this time came. */
  woken(app: string, at: number): void {
    if (this.#asked.has(app)) {
      this.#during.set(app, at);
      return;
    }
    const age = (this.#answered.get(app) ?? 0) - at;
    if (age <= 0 || age > OUTDATED_US) this.#onWake(app);
  }
}
