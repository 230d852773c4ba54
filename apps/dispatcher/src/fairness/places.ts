// Contract 4, "Isolation": limits the attempts of this process and chooses the next delivery. Fresh and woken deliveries come before a backlog.
// A backlog gets at most half of the places, so the backlog of an hour does not delay fresh deliveries. Within each share, projects take turns.

/** `backlog`: the delivery has already waited long in the queue. */
export type Share = 'fresh' | 'backlog';

/** Releases a place. A second call has no effect. */
export type Leave = () => void;

type Grant = (leave: Leave | undefined) => void;

export class Places {
  readonly #most: number;
  /** The waiting requests of each project, in the order of arrival. The projects are in the order of their turns. */
  readonly #waiting: Record<Share, Map<string, Grant[]>> = { fresh: new Map(), backlog: new Map() };
  #taken = 0;
  #backlog = 0;
  #closed = false;
  #emptied: (() => void) | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /** Returns a place, in the order of the calls within a share and a project. Returns nothing after `close`. */
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

  /** The number of taken places. */
  get taken(): number {
    return this.#taken;
  }

  /** Closes the places. Every waiting call returns nothing. */
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

  /** Removes and returns the first waiting request of the first project, and moves that project to the end. */
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
