// Contract 4, "Isolation": attempts at a quick receiver take turns in this process. Turns cost less than parking the deliveries in the store.
// Attempts wait for a turn only briefly, because each waiting attempt holds a place. The store's limit (hosts/host-store) covers all dispatchers.
import type { Slot } from '@inference-proxy/store';

export interface HostTurnsOptions {
  /** Open attempts of one project at one host and port. */
  readonly open: number;
  /** The same for a receiver that answers quickly and without failures. */
  readonly proven: number;
  /** Open attempts beyond `open`, over all receivers: the places that are lost if the quick receivers begin to hang. */
  readonly beyond: number;
  /** The longest time of a quick answer. */
  readonly quickMs: number;
  /** The longest wait for a turn. An attempt with a longer expected wait does not wait. */
  readonly waitMs: number;
  /** The longest time in which no turn of the receiver ends. Then its waiting attempts give their places back, because the receiver may hang. */
  readonly stillMs: number;
  /** The limit of waiting attempts over all receivers, because each holds a place. Attempts at unknown receivers may use a third of this number. */
  readonly waiters: number;
}

/** An attempt's turn at its receiver. */
export interface Turn {
  /** The store's slot, if the attempt before passed the slot on. */
  readonly slot: Slot | undefined;
  /** The receiver's limit of open attempts, as this process knows it. */
  readonly share: number;
  /** Counts the answer of the attempt: a quick success raises the limit of the receiver. Called before `end`. */
  report(success: boolean): void;
  /**
   * Ends the turn. A second call has no effect. @param slot the slot for the next attempt
   * @returns whether another attempt has taken the turn, and the slot if there is one
   */
  end(slot?: Slot): boolean;
  /** Ends the turn if the store gave its slot to a parked delivery. The waiting attempts of this process wait for the end of that delivery. */
  cede(): void;
}

interface Waiter {
  readonly grant: (turn: Turn | undefined) => void;
  readonly until: number;
  timer: NodeJS.Timeout | undefined;
}

/** The number of idle receivers with a remembered pace. With a known pace, a burst at a quick receiver takes turns from its start. */
const REMEMBERED = 1000;

/** One pair of project and host:port with open attempts. */
class Host {
  /** The start of each open attempt, oldest first. */
  readonly open = new Set<{ readonly at: number }>();
  readonly waiting = new Set<Waiter>();
  /** The time when a turn last ended. */
  movedAt = performance.now();
  /** The exponential mean of the durations of attempts, ms; 0 before the end of the first attempt. */
  meanMs = 0;

  constructor(
    /** The current limit of open attempts. */
    public share: number,
  ) {}

  /** Returns the expected wait of a new waiting attempt. A receiver without an answer counts as slow as its oldest open attempt. */
  expectedWaitMs(now: number): number {
    const [oldest] = this.open;
    const turnMs = Math.max(this.meanMs, oldest ? now - oldest.at : 0);
    return (turnMs * (this.waiting.size + 1)) / this.share;
  }
}

export class HostTurns {
  readonly #options: HostTurnsOptions;
  readonly #hosts = new Map<string, Host>();
  /** The mean times of idle receivers, in the order of removal. */
  readonly #means = new Map<string, number>();
  #waiters = 0;
  #beyond = 0;

  constructor(options: HostTurnsOptions) {
    this.#options = options;
  }

  /**
   * Returns a turn, at once or within `waitMs`. Returns nothing if the receiver is too slow or too many attempts wait: a wait would hold a place.
   */
  enter(project: string, hostAndPort: string): Promise<Turn | undefined> {
    const key = `${project} ${hostAndPort}`;
    const host = this.#host(key);
    const { waitMs, stillMs, waiters } = this.#options;
    if (this.#hasRoom(host)) return Promise.resolve(this.#turn(key, host));
    const most = host.meanMs === 0 ? Math.ceil(waiters / 3) : waiters;
    if (this.#waiters >= most || host.expectedWaitMs(performance.now()) > waitMs) return Promise.resolve(undefined);
    this.#waiters += 1;
    return new Promise((resolve) => {
      const grant = (turn: Turn | undefined): void => {
        this.#waiters -= 1;
        resolve(turn);
      };
      const waiter: Waiter = { grant, until: performance.now() + waitMs, timer: undefined };
      const look = (): void => {
        const now = performance.now();
        const patienceMs = Math.min(waiter.until, host.movedAt + stillMs) - now;
        if (patienceMs > 0) {
          waiter.timer = setTimeout(look, Math.ceil(patienceMs));
          return;
        }
        host.waiting.delete(waiter);
        this.#forgetIdle(key, host);
        grant(undefined);
      };
      host.waiting.add(waiter);
      waiter.timer = setTimeout(look, Math.min(waitMs, stillMs));
    });
  }

  /** Returns a turn at once, for an attempt with a slot from the store. Its end passes the slot to a waiting attempt of this process. */
  join(project: string, hostAndPort: string): Turn {
    const key = `${project} ${hostAndPort}`;
    return this.#turn(key, this.#host(key));
  }

  /** The number of hosts with open attempts. */
  get hosts(): number {
    return this.#hosts.size;
  }

  #host(key: string): Host {
    const known = this.#hosts.get(key);
    if (known) return known;
    const host = new Host(this.#options.open);
    host.meanMs = this.#means.get(key) ?? 0;
    this.#hosts.set(key, host);
    return host;
  }

  /** Removes an idle receiver. After a ceded last turn, the receiver becomes idle when its last waiting attempt times out. */
  #forgetIdle(key: string, host: Host): void {
    if (host.open.size > 0 || host.waiting.size > 0 || this.#hosts.get(key) !== host) return;
    this.#hosts.delete(key);
    this.#means.delete(key);
    this.#means.set(key, host.meanMs);
    const [oldest] = this.#means.keys();
    if (this.#means.size > REMEMBERED && oldest !== undefined) this.#means.delete(oldest);
  }

  #hasRoom({ open, share }: Host): boolean {
    return open.size < this.#options.open || (open.size < share && this.#beyond < this.#options.beyond);
  }

  #turn(key: string, host: Host, slot?: Slot): Turn {
    const { open, proven, quickMs } = this.#options;
    const attempt = { at: performance.now() };
    const isBeyond = host.open.size >= open;
    if (isBeyond) this.#beyond += 1;
    host.open.add(attempt);
    let reported = false;
    const over = (): boolean => {
      if (!host.open.delete(attempt)) return false;
      if (isBeyond) this.#beyond -= 1;
      host.movedAt = performance.now();
      const tookMs = host.movedAt - attempt.at;
      host.meanMs += (tookMs - host.meanMs) * (host.meanMs === 0 ? 1 : 0.2);
      return true;
    };
    const end = (passed?: Slot): boolean => {
      if (!over()) return false;
      let taken = false;
      for (const next of host.waiting) {
        const inherits = passed !== undefined && !taken;
        if (!inherits && !this.#hasRoom(host)) break;
        host.waiting.delete(next);
        clearTimeout(next.timer);
        next.grant(this.#turn(key, host, inherits ? passed : undefined));
        taken = true;
      }
      this.#forgetIdle(key, host);
      return taken;
    };
    const cede = (): void => {
      if (over()) this.#forgetIdle(key, host);
    };
    const report = (success: boolean): void => {
      if (reported) return;
      reported = true;
      const isQuick = performance.now() - attempt.at <= quickMs;
      host.share = success && isQuick ? Math.max(open, Math.min(host.share + 1, proven)) : open;
    };
    return {
      slot,
      get share() {
        return host.share;
      },
      report,
      end,
      cede,
    };
  }
}
