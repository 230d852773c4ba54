// Takes runs from one project's queues for the slots that are free. Woken, never polling.
import type { TakenRun, WorkerStore } from '@inference-proxy/store';

/** Free slots of an app, as a take asks for them. */
export interface Want {
  readonly app: string;
  readonly slots: number;
}

const RETRY_MS = 1_000;

/**
 * One project's intake: one take at a time.
 *
 * An app whose queue gave less than was asked is left out of further takes until the store wakes it: this worker is then in the app's
 * waiting set, and only its own take would remove it. So a slot that becomes free costs no command while the queue is empty.
 */
export class Intake {
  private readonly waiting = new Set<string>();
  /** Apps woken while a take is under way: what that take found of them may be out of date. Null stands for all. */
  private readonly woken = new Set<string | null>();
  /** Woken apps: one without a free slot (its replica died, its code changes) is told so, and the next worker gets the wake. */
  private readonly declined = new Set<string>();
  private taking: Promise<void> | undefined;
  private stopped = false;
  private retryTimer: NodeJS.Timeout | undefined;

  /**
   * @param freeSlots slots by app, as they are now; called before each take
   * @param start begins a taken run; may not throw
   */
  constructor(
    private readonly project: string,
    private readonly store: Pick<WorkerStore, 'take'>,
    private readonly freeSlots: () => readonly Want[],
    private readonly start: (run: TakenRun) => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** The store has (or may have) runs for this app; undefined: for any. */
  wake(app: string | undefined): void {
    if (app === undefined) this.waiting.clear();
    else {
      this.waiting.delete(app);
      this.declined.add(app);
    }
    if (this.taking) this.woken.add(app ?? null);
    this.look();
  }

  /** Slots may have become free. */
  look(): void {
    if (this.stopped || this.taking || this.retryTimer !== undefined) return;
    if (this.wants().length === 0) return;
    this.taking = this.takeAll().finally(() => {
      this.taking = undefined;
      // A slot or a wake that came with the last reply.
      this.look();
    });
  }

  /** Takes no more and leaves the waiting sets; resolves when that, and the take under way, has been answered. */
  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.retryTimer);
    await this.taking;
    // Asking for no slots is how a worker leaves: a wake meant for it goes to the next.
    const wants = this.freeSlots().map(({ app }) => ({ app, slots: 0 }));
    if (wants.length > 0) await this.store.take(this.project, wants).catch(this.failed);
  }

  private wants(): Want[] {
    return this.freeSlots().filter(({ app, slots }) => (slots > 0 ? !this.waiting.has(app) : this.declined.has(app)));
  }

  private async takeAll(): Promise<void> {
    for (let wants = this.wants(); wants.length > 0 && !this.stopped; wants = this.wants()) {
      this.woken.clear();
      this.declined.clear();
      try {
        const { runs, more } = await this.store.take(this.project, wants);
        const missing = new Map(wants.map(({ app, slots }) => [app, slots]));
        for (const run of runs) missing.set(run.app, (missing.get(run.app) ?? 0) - 1);
        for (const [app, slots] of missing)
          if (slots > 0 && !more && !this.woken.has(app) && !this.woken.has(null)) this.waiting.add(app);
        for (const run of runs) this.start(run);
      } catch (error) {
        this.failed(error);
        this.retryTimer = setTimeout(() => {
          this.retryTimer = undefined;
          this.look();
        }, RETRY_MS);
        return;
      }
    }
  }
}
