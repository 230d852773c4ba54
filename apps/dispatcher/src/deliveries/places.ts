// webhooks.md "Isolation": how many attempts this process has under way, and which delivery begins next. Fresh and woken deliveries come before
// a backlog, which gets half of the places: an hour's backlog does not starve what is due now. Within each, projects take turns.

/** `backlog`: has waited long in the queue already. */
export type Share = 'fresh' | 'backlog';

/** Gives a place back; once is enough. */
export type Leave = () => void;

type Grant = (leave: Leave | undefined) => void;

export class Places {
  readonly #most: number;
  /** By project, each in the order of asking. Projects are in the order of their turns. */
  readonly #waiting: Record<Share, Map<string, Grant[]>> = { fresh: new Map(), backlog: new Map() };
  #taken = 0;
  #backlog = 0;
  #closed = false;
  #emptied: (() => void) | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /** A place, in the order of asking within a share and a project; nothing once closed. */
  take(share: Share, project: string): Promise<Leave | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const waiting = this.#waiting[share];
    if (this.#free(share) && waiting.size === 0) return Promise.resolve(this.#grant(share));
    return new Promise((grant) => {
      const own = waiting.get(project);
      if (own) own.push(grant);
      else waiting.set(project, [grant]);
    });
  }

  /** How many are taken. */
  get taken(): number {
    return this.#taken;
  }

  /** Gives no more places; whoever waits gets nothing. */
  close(): void {
    this.#closed = true;
    for (const waiting of Object.values(this.#waiting)) {
      for (const grants of waiting.values()) for (const grant of grants) grant(undefined);
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
        while (this.#waiting[next].size > 0 && this.#free(next)) this.#next(next)?.(this.#grant(next));
      }
      if (this.#taken === 0) {
        this.#emptied?.();
        this.#emptied = undefined;
      }
    };
  }

  /** Returns the first waiter of the project at the head, and moves that project behind the others. */
  #next(share: Share): Grant | undefined {
    const waiting = this.#waiting[share];
    for (const [project, grants] of waiting) {
      waiting.delete(project);
      const grant = grants.shift();
      if (grants.length > 0) waiting.set(project, grants);
      return grant;
    }
    return undefined;
  }
}
