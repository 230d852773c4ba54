// Contract 5: takes runs from a project's queues for free slots. The store wakes the intake, so it never polls.
import type { TakenRun, TakeRequest, WorkerStore } from '@inference-proxy/store';

/**
 * The intake of a project. Only one take is open at a time.
 *
 * If an app's queue has fewer runs than free slots, this worker joins the app's waiting set. Further takes skip the app until the store wakes
 * it, because a take would remove the worker from the set. A slot that becomes free therefore costs no command while the queue is empty.
 */
export class RunIntake {
  readonly #waiting = new Set<string>();
  /** Apps that were woken during a take, because the take's result for them may be out of date. Null means all apps. */
  readonly #woken = new Set<string | null>();
  /** Woken apps. An app without a free slot (its replica died, its code changes) is taken with zero slots, so the next worker gets the wake. */
  readonly #declined = new Set<string>();
  #taking: Promise<void> | undefined;
  #stopped = false;

  readonly #project: string;
  readonly #store: Pick<WorkerStore, 'take'>;
  readonly #freeSlots: () => readonly TakeRequest[];
  readonly #start: (run: TakenRun) => void;

  /**
   * @param freeSlots returns the present slots by app; called before each take
   * @param start begins a taken run; must not throw
   */
  constructor(
    project: string,
    store: Pick<WorkerStore, 'take'>,
    freeSlots: () => readonly TakeRequest[],
    start: (run: TakenRun) => void,
  ) {
    this.#project = project;
    this.#store = store;
    this.#freeSlots = freeSlots;
    this.#start = start;
  }

  /** Takes again, because the store has (or may have) runs of this app; undefined means any app. */
  wake(app: string | undefined): void {
    if (app === undefined) this.#waiting.clear();
    else {
      this.#waiting.delete(app);
      this.#declined.add(app);
    }
    if (this.#taking) this.#woken.add(app ?? null);
    this.look();
  }

  /** Takes again if there are free slots. */
  look(): void {
    if (this.#stopped || this.#taking) return;
    if (this.#requests().length === 0) return;
    this.#taking = this.#takeAll().finally(() => {
      this.#taking = undefined;
      // A slot or a wake may have come with the last reply.
      this.look();
    });
  }

  /** Stops taking and leaves the waiting sets. Resolves when the open take and the leave are answered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#taking;
    // A take with zero slots leaves the waiting set, so the next wake goes to another worker.
    const requests = this.#freeSlots().map(({ app }) => ({ app, slots: 0 }));
    if (requests.length > 0) await this.#store.take(this.#project, requests);
  }

  #requests(): TakeRequest[] {
    return this.#freeSlots().filter(({ app, slots }) =>
      slots > 0 ? !this.#waiting.has(app) : this.#declined.has(app),
    );
  }

  /** Never rejects, because the store repeats a failed take. */
  async #takeAll(): Promise<void> {
    for (let requests = this.#requests(); requests.length > 0 && !this.#stopped; requests = this.#requests()) {
      this.#woken.clear();
      this.#declined.clear();
      const { runs, more } = await this.#store.take(this.#project, requests);
      const missing = new Map(requests.map(({ app, slots }) => [app, slots]));
      for (const run of runs) missing.set(run.app, (missing.get(run.app) ?? 0) - 1);
      for (const [app, slots] of missing)
        if (slots > 0 && !more && !this.#woken.has(app) && !this.#woken.has(null)) this.#waiting.add(app);
      for (const run of runs) this.#start(run);
    }
  }
}
