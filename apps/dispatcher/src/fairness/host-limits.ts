// webhooks.md "Isolation": attempts to a quick receiver take turns in this process, which is cheaper than parking them in the store. They wait
// only for a moment: what waits here holds a place. The cap that counts is the store's (hosts/host-store), over all dispatchers.
import type { Slot } from '@inference-proxy/store';

export interface HostLimitOptions {
  /** How many attempts one project may have open to one host and port. */
  readonly open: number;
  /** The same to a receiver that answers quickly and well. */
  readonly proven: number;
  /** How many attempts may be open beyond `open`, over all receivers: when the quick ones begin to hang, no more than these places are lost. */
  readonly beyond: number;
  /** An answer that took no longer is quick. */
  readonly quickMs: number;
  /** How long an attempt beyond that may wait here for its turn; where it would take longer, it is not let wait at all. */
  readonly waitMs: number;
  /** How long the turns of those that wait may stand still: a receiver that begins to hang frees their places this soon. */
  readonly stillMs: number;
  /** How many may wait at once, over all receivers: each holds one of this process' places. A third of them for receivers not known yet. */
  readonly waiters: number;
}

/** An attempt's turn at its receiver. */
export interface Turn {
  /** The store's slot, where the attempt before passed it on. */
  readonly slot: Slot | undefined;
  /** How many attempts the receiver may have open as far as this process knows it. */
  readonly share: number;
  /** What its attempt has shown of the receiver. Before its end. */
  shown(well: boolean): void;
  /**
   * Ends the turn; once is enough. @param slot to be passed on
   * @returns whether somebody has taken the slot
   */
  end(slot?: Slot): boolean;
  /** Ends the turn in favour of a parked delivery that was woken in its place: those that wait here wait for that one's end. */
  cede(): void;
}

interface Waiter {
  readonly grant: (turn: Turn | undefined) => void;
  readonly until: number;
  timer: NodeJS.Timeout | undefined;
}

/** Receivers whose pace is remembered while nothing is open: a burst to one that is known to be quick takes turns from its start. */
const REMEMBERED = 1000;

/** One (project, host:port), while anything is open. */
class Host {
  /** When each open attempt began, oldest first. */
  readonly open = new Set<{ readonly at: number }>();
  readonly waiting = new Set<Waiter>();
  /** When a turn last ended. */
  movedAt = performance.now();
  /** Milliseconds that attempts took of late (an exponential mean); 0 before the first has ended. */
  meanMs = 0;

  constructor(
    /** How many attempts it may have open now. */
    public share: number,
  ) {}

  /** What an attempt that queues up now would wait: a receiver that has not answered yet is as slow as its oldest open attempt. */
  expectedWaitMs(now: number): number {
    const [oldest] = this.open;
    const turnMs = Math.max(this.meanMs, oldest ? now - oldest.at : 0);
    return (turnMs * (this.waiting.size + 1)) / this.share;
  }
}

export class HostLimits {
  readonly #options: HostLimitOptions;
  readonly #hosts = new Map<string, Host>();
  /** Their mean times, the one forgotten next first. */
  readonly #means = new Map<string, number>();
  #waiters = 0;
  #beyond = 0;

  constructor(options: HostLimitOptions) {
    this.#options = options;
  }

  /**
   * A turn, at once or within `waitMs`. Nothing where the receiver is so slow, or so many wait, that waiting would hold the place of others.
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

  /** A turn at once, for an attempt that has its slot from elsewhere: when it ends, it passes the slot on here. */
  join(project: string, hostAndPort: string): Turn {
    const key = `${project} ${hostAndPort}`;
    return this.#turn(key, this.#host(key));
  }

  /** How many hosts have open attempts. */
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

  /** Also for a receiver whose last turn was ceded: nothing is open there when its last waiter times out. */
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
    let well: boolean | undefined;
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
    const shown = (isWell: boolean): void => {
      if (well !== undefined) return;
      well = isWell;
      const isQuick = performance.now() - attempt.at <= quickMs;
      host.share = well && isQuick ? Math.max(open, Math.min(host.share + 1, proven)) : open;
    };
    return {
      slot,
      get share() {
        return host.share;
      },
      shown,
      end,
      cede,
    };
  }
}
