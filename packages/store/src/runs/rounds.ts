// What every gateway looks after again and again (reaper, sweeper, append-only-file): one round at a time.

export abstract class Rounds {
  private timer: NodeJS.Timeout | undefined;
  private running = false;

  /** @param everyMs from the beginning of one round to the next */
  constructor(private readonly everyMs: number) {}

  start(): void {
    this.timer ??= setInterval(() => void this.once(), this.everyMs);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** One round; nothing while one is under way. */
  async once(): Promise<void> {
    if (this.running) return;
    this.running = true;
    try {
      await this.look();
    } finally {
      this.running = false;
    }
  }

  /** Does what there is to do. Never rejects: the next round tries again. */
  protected abstract look(): Promise<void>;
}
