// Contract 5, "Retention and limits": forgets runs after their retention. Near the bound it forgets the oldest unpromised runs.
// Runs in every gateway.
import type { Redis } from 'ioredis';
import { names, projectPrefix, projectsKey } from '../keys.ts';
import { redisInfo } from '../redis-info.ts';
import { runScript } from '../scripts.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { Rounds } from './rounds.ts';
import { sweepScript } from './sweep.ts';

/** Runs forgotten per kind and call, so that a call stays short. */
const MOST = 256;
/** If a run has a reader at the end of its retention, it is visited again after this time. */
const READ_MS = 1_000;
/** Calls in a row for one project. Further runs wait for the next round. */
const MOST_CALLS = 100;
/** New calls are refused from this part of the bound on (docs/decisions/0012-the-run-store-is-bounded.md). */
const FULL = 0.85;
/** Above TIGHT, room is made down to ROOMY. So room exists before a call is refused, and not every run starts an eviction. */
const TIGHT = 0.8;
const ROOMY = 0.75;
/** While this part of the bound is free, accepts do not count. The runs of one second are smaller. */
const PLENTY = 0.4;
/** The part of the bound that one of several projects may take. */
const SHARE = 0.5;
/** The part of a project's share that `accept` may fill. Results are written later and may be larger than their parameters. */
const ACCEPTED = 0.95;
/** Reserve of each run under way, for its outcome (parts/share.lua). It counts only if a project holds more than NEAR of its share. */
const RESERVED = 640;
const NEAR = 0.5;
/** A share is written again after a change of more than this part. */
const CHANGED = 0.01;
/** The bound if Redis has no `maxmemory`, and the part of `maxmemory` if Redis has one. */
const DEFAULT_BOUND = 1024 ** 3;
const SHARE_OF_REDIS = 0.6;
/** Above this part of `maxmemory`, room is made for any bound: the runs' bytes are an estimate, and other data is in Redis too. */
const REDIS_FULL = 0.9;
/** Once in this many rounds, `maxmemory` is read, and projects without a due run are visited too. */
const SLOW_ROUNDS = 10;

interface Kept {
  bytes: number;
  /** The share that bounds writes, as the store has it (parts/share.lua). */
  share: number | undefined;
  /** `evictable`: unpromised ended runs may make room for writes. `evictableWritten`: the value in the store. */
  evictable: boolean;
  evictableWritten: boolean;
  /** Bytes for which a write needs room. */
  wanted: number;
  /** Number of runs that have not ended or whose delivery is open. */
  underWay: number;
  /** Bytes after the last sweep. If the bytes have changed since, new runs exist whose times are unknown. */
  swept: number;
  /** Time at which the retention of the oldest evictable run ends, Unix ms; infinite without such a run. */
  oldest: number;
  /** Time at which the next run's retention ends. */
  next: number;
}

/** Formats a share for parts/share.lua. */
export const shareText = (share: number, evictable: boolean): string => `${share} ${evictable ? 1 : 0}`;

export class Sweeper extends Rounds {
  #round = 0;
  readonly #projects = new Map<string, Kept>();
  /** Bytes of all projects' runs, and the limit. The limit is infinite until it is known, so no call is refused on a guess. */
  #total = 0;
  #held = { minimum: 0, total: 0, bytes: 0 };
  #limit = Number.POSITIVE_INFINITY;

  readonly #redis: Redis;
  readonly #logger: StoreLogger;
  readonly #timings: StoreTimings;
  readonly #maxBytes: number | undefined;

  /** @param maxBytes the bound; if absent, the bound depends on Redis' memory */
  constructor(redis: Redis, logger: StoreLogger, timings: StoreTimings, maxBytes: number | undefined) {
    super(timings.reapMs);
    this.#redis = redis;
    this.#logger = logger;
    this.#timings = timings;
    this.#maxBytes = maxBytes;
  }

  /** Runs the first round at once, because no call is refused before it. */
  override start(): void {
    super.start();
    void this.once();
  }

  /** Bytes of all projects' runs, and the bound (infinite until it is known). */
  get usage(): { readonly bytes: number; readonly boundBytes: number } {
    return { bytes: this.#total, boundBytes: this.#limit };
  }

  /**
   * Returns a project's share of the bound (Contract 9) without the reserve of its runs under way, in bytes; undefined while the bound is
   * unknown. The share is at most half of the bound, and at most what other projects leave. Half of the bound, divided by the number of
   * projects, belongs to each project.
   */
  shareOf(project: string): number | undefined {
    if (!Number.isFinite(this.#limit)) return undefined;
    const reserved = RESERVED * (this.#projects.get(project)?.underWay ?? 0);
    return Math.max(0, this.#shareAt(project, 1, SHARE) - reserved);
  }

  /** Returns the bytes up to which a project's runs are accepted; undefined if there is so much room that `accept` need not count. */
  roomOf(project: string): number | undefined {
    if (!Number.isFinite(this.#limit)) return undefined;
    const own = this.#projects.get(project)?.bytes ?? 0;
    const room = this.#shareAt(project, FULL, SHARE * ACCEPTED);
    return room - own > this.#limit * PLENTY ? undefined : room;
  }

  /**
   * @param full part of the bound that all projects together may take
   * @param most part that one of several projects may take
   */
  #shareAt(project: string, full: number, most: number): number {
    const projects = this.#projects;
    const limit = this.#limit;
    const count = projects.size + (projects.has(project) ? 0 : 1);
    if (count === 1) return Math.floor(limit * full);
    const minimum = (limit * SHARE) / count;
    const own = projects.get(project);
    const others = this.#heldWith(minimum) - (own ? Math.max(own.bytes, minimum) : 0);
    return Math.floor(Math.max(minimum, Math.min(limit * full - others, limit * most)));
  }

  /** Returns the bytes of all projects, each at least `minimum`. Every call needs the sum, so each total is added up only once. */
  #heldWith(minimum: number): number {
    const held = this.#held;
    const total = this.#total;
    if (held.minimum === minimum && held.total === total) return held.bytes;
    let sum = 0;
    for (const { bytes } of this.#projects.values()) sum += Math.max(bytes, minimum);
    this.#held = { minimum, total, bytes: sum };
    return sum;
  }

  /** Visits all projects. */
  protected override async look(): Promise<void> {
    try {
      await this.#measure();
      // The bound is read in every round while calls are refused, or nearly refused, because the reason may have ended.
      const tight = this.#total > this.#limit * TIGHT;
      if (this.#round++ % SLOW_ROUNDS === 0 || !Number.isFinite(this.#limit) || tight)
        this.#limit = await this.#bound();
      for (const [project, kept] of this.#projects) {
        const due = kept.next <= Date.now() || kept.bytes !== kept.swept || this.#round % SLOW_ROUNDS === 1;
        if (kept.bytes > 0 && due) await this.#safely(project);
      }
      await this.#countUnderWay();
      await this.#makeRoom();
      await this.#serveWrites();
      await this.#writeShares();
    } catch (error) {
      this.#logger.warn({ err: error }, 'a round of the sweeper failed; the next round repeats it');
    }
  }

  async #bound(): Promise<number> {
    const info = await withinLimit(this.#redis.info('memory'), this.#timings.commandMs);
    const fields = redisInfo(info);
    const figure = (name: string): number => Number(fields.get(name) ?? 0);
    const most = figure('maxmemory');
    const bound = this.#maxBytes ?? (most > 0 ? Math.floor(most * SHARE_OF_REDIS) : DEFAULT_BOUND);
    // Redis is nearly full. The bytes now count as the bound, so some runs are removed.
    const pressed = most > 0 && figure('used_memory') > most * REDIS_FULL;
    return pressed ? Math.min(bound, this.#total / FULL) : bound;
  }

  async #measure(): Promise<void> {
    const redis = this.#redis;
    const projects = this.#projects;
    const timings = this.#timings;
    const known = await withinLimit(redis.zrange(projectsKey, '0', '-1'), timings.commandMs);
    const figures = await withinLimit(
      Promise.all(
        known.map((project) => {
          const prefix = projectPrefix(project);
          return redis.mget(prefix + names.bytes, prefix + names.share, prefix + names.wanted);
        }),
      ),
      timings.commandMs,
    );
    const gone = new Set(projects.keys());
    for (const [at, project] of known.entries()) {
      gone.delete(project);
      const kept = projects.get(project);
      const [bytes, written, wanted] = figures[at] as (string | null)[];
      const now = Math.max(0, Number(bytes ?? 0));
      const [share, flag] = written?.split(' ') ?? [];
      const read = {
        bytes: now,
        share: share === undefined ? undefined : Number(share),
        evictableWritten: flag === '1',
        wanted: Number(wanted ?? 0),
      };
      if (kept) Object.assign(kept, read);
      else projects.set(project, { ...read, evictable: false, underWay: 0, swept: 0, oldest: 0, next: 0 });
    }
    for (const project of gone) projects.delete(project);
    this.#count();
  }

  #count(): void {
    this.#total = 0;
    for (const { bytes } of this.#projects.values()) this.#total += bytes;
  }

  /** Writes each project's share for the scripts that write runs. */
  async #writeShares(): Promise<void> {
    const redis = this.#redis;
    const timings = this.#timings;
    const writes: Promise<unknown>[] = [];
    for (const [project, kept] of this.#projects) {
      const share = this.shareOf(project);
      if (share === undefined) continue;
      const evictable = kept.evictable && kept.bytes > 0;
      const same = Math.abs(share - (kept.share ?? Number.POSITIVE_INFINITY)) <= share * CHANGED;
      if (same && evictable === kept.evictableWritten) continue;
      writes.push(redis.set(projectPrefix(project) + names.share, shareText(share, evictable)));
    }
    if (writes.length > 0) await withinLimit(Promise.all(writes), timings.commandMs);
  }

  /** Counts the runs under way of projects near their share. Their reserve matters only there. */
  async #countUnderWay(): Promise<void> {
    const redis = this.#redis;
    const timings = this.#timings;
    const counts = [...this.#projects].map(async ([project, kept]) => {
      kept.underWay = 0;
      if (kept.bytes < (this.shareOf(project) ?? Number.POSITIVE_INFINITY) * NEAR) return;
      const prefix = projectPrefix(project);
      const indexes = [names.runs, names.kept, names.promises];
      const [all, ...ended] = await Promise.all(indexes.map((index) => redis.zcard(prefix + index)));
      kept.underWay = Math.max(
        0,
        ended.reduce((left, count) => left - count, all as number),
      );
    });
    await withinLimit(Promise.all(counts), timings.commandMs);
  }

  /** Makes room for the writes that wait for it. */
  async #serveWrites(): Promise<void> {
    for (const [project, kept] of this.#projects) {
      const share = this.shareOf(project);
      if (kept.wanted === 0 || share === undefined) {
        kept.evictable = Number.isFinite(kept.oldest) && kept.oldest > 0;
        continue;
      }
      await withinLimit(this.#redis.del(projectPrefix(project) + names.wanted), this.#timings.commandMs);
      const before = kept.bytes;
      await this.#safely(project, Math.max(0, share - kept.wanted));
      // The remaining runs are promised or read, so a write that does not fit now is refused.
      kept.evictable = kept.bytes < before;
    }
  }

  async #makeRoom(): Promise<void> {
    for (const [project, { bytes }] of this.#projects) {
      const share = this.shareOf(project) ?? Number.POSITIVE_INFINITY;
      if (bytes > (share * TIGHT) / FULL) await this.#safely(project, (share * ROOMY) / FULL);
    }
    if (this.#total <= this.#limit * TIGHT) return;
    const aim = this.#limit * ROOMY;
    // The oldest runs go first, in any project. Each call removes only a part, because the oldest run may then belong to another project.
    for (let calls = 0; calls < MOST_CALLS && this.#total > aim; calls++) {
      const [oldest] = [...this.#projects].sort(([, a], [, b]) => a.oldest - b.oldest);
      if (!oldest || !Number.isFinite(oldest[1].oldest)) return;
      const [project, kept] = oldest;
      const before = kept.bytes;
      await this.#safely(project, Math.max(0, before - Math.max(this.#total - aim, 0)), 1);
      // Every evictable run has a reader.
      if (kept.bytes >= before) kept.oldest = Number.POSITIVE_INFINITY;
    }
  }

  /** Sweeps one project. A failure does not keep the other projects from being swept. */
  async #safely(project: string, downTo?: number, calls = MOST_CALLS): Promise<void> {
    try {
      for (let call = 0; call < calls && (await this.#sweep(project, downTo)); call++);
    } catch (error) {
      this.#logger.warn({ err: error, project }, 'a project was not swept; the next round repeats it');
    }
  }

  /** @returns true if further runs can be removed */
  async #sweep(project: string, downTo: number | undefined): Promise<boolean> {
    const args = { most: MOST, downTo: downTo === undefined ? undefined : Math.floor(downTo), readMs: READ_MS };
    const swept = await withinLimit(runScript(this.#redis, sweepScript, project, args), this.#timings.commandMs);
    const known = this.#projects.get(project);
    if (known) {
      known.bytes = Math.max(0, swept.bytes);
      known.swept = known.bytes;
      known.oldest = swept.nextKept;
      known.next = Math.min(swept.nextKept, swept.nextPromise);
    }
    this.#count();
    return swept.more;
  }
}
