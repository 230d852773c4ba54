// Contract 5: takes runs from a project's queues for free slots. The store wakes the intake, so it never polls.
import { queueIn, type TakenRun, type TakeRequest, type WorkerStore } from '@inference-proxy/store';

/** What a worker takes of one queue now. */
export interface OpenQueue extends TakeRequest {
  /** Called when the queue is empty. Set for a version that is no longer active: no further run comes into its queue. */
  readonly emptied?: () => void;
}

/**
 * The intake of a project. Only one take is open at a time.
 *
 * If a queue has fewer runs than free slots, this worker joins the queue's waiting set. Further takes skip the queue until the store wakes
 * it, because a take would remove the worker from the set. A slot that becomes free therefore costs no command while the queue is empty.
 */
export class RunIntake {
  readonly #waiting = new Set<string>();
  /** Queues that were woken during a take, because the take's result for them may be out of date. Null means all queues. */
  readonly #woken = new Set<string | null>();
  /** Woken queues. A queue without a free slot (its replica died, its code changes) is taken with zero slots, so the next worker gets the wake. */
  readonly #declined = new Set<string>();
  /** Queues that this worker no longer serves. A take with zero slots leaves their waiting sets. */
  readonly #left = new Set<string>();
  #taking: Promise<void> | undefined;
  #stopped = false;

  readonly #project: string;
  readonly #store: Pick<WorkerStore, 'take'>;
  readonly #freeSlots: () => readonly OpenQueue[];
  readonly #start: (run: TakenRun) => void;

  /**
   * @param freeSlots returns the present slots by queue; called before each take
   * @param start begins a taken run; must not throw
   */
  constructor(
    project: string,
    store: Pick<WorkerStore, 'take'>,
    freeSlots: () => readonly OpenQueue[],
    start: (run: TakenRun) => void,
  ) {
    this.#project = project;
    this.#store = store;
    this.#freeSlots = freeSlots;
    this.#start = start;
  }

  /** Takes again, because the store has (or may have) runs in this queue; undefined means any queue. */
  wake(queue: string | undefined): void {
    if (queue === undefined) this.#waiting.clear();
    else {
      this.#waiting.delete(queue);
      if (this.#freeSlots().some((open) => queueIn(open) === queue)) this.#declined.add(queue);
      else this.#left.add(queue);
    }
    if (this.#taking) this.#woken.add(queue ?? null);
    this.look();
  }

  /** Takes again, because the served queues may have changed. */
  follow(): void {
    const served = new Set(this.#freeSlots().map(queueIn));
    for (const queue of this.#waiting) if (!served.has(queue)) this.#left.add(queue);
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
    const requests = this.#freeSlots().map(({ app, queue }) => ({ app, queue, slots: 0 }));
    if (requests.length > 0) await this.#store.take(this.#project, requests);
  }

  #requests(): OpenQueue[] {
    const requests = this.#freeSlots().filter((open) => {
      const queue = queueIn(open);
      // A take must find out whether the queue of an old version is empty.
      if (open.slots > 0) return open.emptied !== undefined || !this.#waiting.has(queue);
      return this.#declined.has(queue);
    });
    for (const queue of this.#left) requests.push({ app: queue, slots: 0 });
    return requests;
  }

  /** Never rejects, because the store repeats a failed take. */
  async #takeAll(): Promise<void> {
    for (let requests = this.#requests(); requests.length > 0 && !this.#stopped; requests = this.#requests()) {
      this.#woken.clear();
      this.#declined.clear();
      for (const queue of this.#left) this.#waiting.delete(queue);
      this.#left.clear();
      const { runs, more } = await this.#store.take(this.#project, requests);
      const missing = new Map(requests.map((open) => [queueIn(open), open.slots]));
      for (const run of runs) missing.set(run.queue, (missing.get(run.queue) ?? 0) - 1);
      // Runs start first, because a version whose queue is empty takes no further run.
      for (const run of runs) this.#start(run);
      for (const open of requests) {
        const queue = queueIn(open);
        if ((missing.get(queue) ?? 0) <= 0 || more || this.#woken.has(queue) || this.#woken.has(null)) continue;
        this.#waiting.add(queue);
        open.emptied?.();
      }
    }
  }
}
