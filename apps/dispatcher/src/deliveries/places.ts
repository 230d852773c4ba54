// webhooks.md "Isolation": how many attempts this process has under way, and who is next. Fresh deliveries and woken ones before a backlog,
// which gets half of the places and no more: an hour's backlog does not starve what is due now.

/** `backlog`: has waited long in the queue already. */
export type Share = 'fresh' | 'backlog';

/** Gives a place back; once is enough. */
export type Leave = () => void;

interface Waiter {
  readonly grant: (leave: Leave | undefined) => void;
}

export class Places {
  readonly #most: number;
  readonly #waiting: Record<Share, Set<Waiter>> = { fresh: new Set(), backlog: new Set() };
  #taken = 0;
  #backlog = 0;
  #closed = false;
  #emptied: (() => void) | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /** A place, in the order of asking within a share; nothing once closed. */
  take(share: Share): Promise<Leave | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    if (this.#free(share) && this.#waiting[share].size === 0) return Promise.resolve(this.#grant(share));
    return new Promise((grant) => this.#waiting[share].add({ grant }));
  }

  /** How many are taken. */
  get taken(): number {
    return this.#taken;
  }

  /** Gives no more places; who waits is told so. */
  close(): void {
    this.#closed = true;
    for (const waiting of Object.values(this.#waiting)) {
      for (const { grant } of waiting) grant(undefined);
      waiting.clear();
    }
  }

  /** Resolves when no place is taken. */
  empty(): Promise<void> {
    if (this.#taken === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const before = this.#emptied;
      this.#emptied = () => {
        before?.();
        resolve();
      };
    });
  }

  #free(share: Share): boolean {
    if (this.#taken >= this.#most) return false;
    return share === 'fresh' || this.#backlog < Math.ceil(this.#most / 2);
  }

  #grant(share: Share): Leave {
    this.#taken += 1;
    if (share === 'backlog') this.#backlog += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#taken -= 1;
      if (share === 'backlog') this.#backlog -= 1;
      for (const next of ['fresh', 'backlog'] as const) {
        for (const waiter of this.#waiting[next]) {
          if (!this.#free(next)) break;
          this.#waiting[next].delete(waiter);
          waiter.grant(this.#grant(next));
        }
      }
      if (this.#taken === 0) {
        this.#emptied?.();
        this.#emptied = undefined;
      }
    };
  }
}
