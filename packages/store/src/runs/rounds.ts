// Repeats a task of every gateway (reaper, sweeper, append-only file), one round at a time.

export abstract class Rounds {
  #timer: NodeJS.Timeout | undefined;
  #running = false;

  readonly #everyMs: number;

  /** @param everyMs time between the starts of two rounds */
  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.once(), this.#everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Runs one round. Does nothing while a round is under way. */
  async once(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    try {
      await this.look();
    } finally {
      this.#running = false;
    }
  }

  /** Does the work of one round. Never rejects, because the next round repeats the work. */
  protected abstract look(): Promise<void>;
}
