// Contract 5, "Retention and limits": forgets runs after their retention. Near the bound it forgets the oldest unpromised runs.
// Runs in every gateway.
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { redisInfo } from '../redis-info.ts';
import { runScript } from '../scripts.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { hasTurn, type IndexedProject, type MaintenanceParts, type ProjectIndex } from './project-index.ts';
import type { Task } from './rounds.ts';
import { FULL, type ProjectBytes, type Shares, shareText } from './shares.ts';
import { sweepScript } from './sweep.ts';

/** Runs forgotten per kind and call, so that a call stays short. */
const MOST = 256;
/** If a run has a reader at the end of its retention, it is visited again after this time. */
const READ_MS = 1_000;
/** Calls in a row for one project. Further runs wait for the next round. */
const MOST_CALLS = 100;
/** Above TIGHT, room is made down to ROOMY. So room exists before a call is refused, and not every run starts an eviction. */
const TIGHT = 0.8;
const ROOMY = 0.75;
/** The reserve of runs under way counts only if a project holds more than this part of its share. */
const NEAR = 0.5;
/** A share is written again after a change of more than this part. */
const CHANGED = 0.01;
/** The bound if Redis has no `maxmemory`, and the part of `maxmemory` if Redis has one. */
const DEFAULT_BOUND = 1024 ** 3;
const SHARE_OF_REDIS = 0.6;
/** Above this part of `maxmemory`, room is made for any bound: the runs' bytes are an estimate, and other data is in Redis too. */
const REDIS_FULL = 0.9;
/** Once in this many rounds, `maxmemory` is read, and busy projects without a due run are visited too. */
const SLOW_ROUNDS = 10;

interface Kept extends ProjectBytes {
  readonly indexed: IndexedProject;
  /** The project was idle when its bytes were read. Until its next use they change only by a sweep. */
  rested: boolean;
  /** The share that bounds writes, as the store has it (parts/memory.lua). */
  share: number | undefined;
  /** `evictable`: unpromised ended runs may make room for writes. `evictableWritten`: the value in the store. */
  evictable: boolean;
  evictableWritten: boolean;
  /** Bytes for which a write needs room. */
  wanted: number;
  /** Bytes after the last sweep. If the bytes have changed since, new runs exist whose times are unknown. */
  swept: number;
  /** Time at which the retention of the oldest evictable run ends, Unix ms; infinite without such a run. */
  oldest: number;
  /** Time at which the next run's retention ends. */
  next: number;
}

export class Sweeper implements Task {
  readonly everyMs: number;
  /** No call is refused before the first round. */
  readonly atOnce = true;
  #round = 0;
  readonly #projects = new Map<string, Kept>();

  readonly #redis: Redis;
  readonly #logger: StoreLogger;
  readonly #timings: StoreTimings;
  readonly #index: ProjectIndex;
  readonly #shares: Shares;
  readonly #maxBytes: number | undefined;

  /** @param maxBytes the bound; if absent, the bound depends on Redis' memory */
  constructor({ redis, logger, timings, projects }: MaintenanceParts, shares: Shares, maxBytes?: number) {
    this.everyMs = timings.reapMs;
    this.#redis = redis;
    this.#logger = logger;
    this.#timings = timings;
    this.#index = projects;
    this.#shares = shares;
    this.#maxBytes = maxBytes;
  }

  async run(): Promise<void> {
    try {
      await this.#measure();
      // The bound is read in every round while calls are refused, or nearly refused, because the reason may have ended.
      const { boundBytes } = this.#shares.usage;
      if (this.#round++ % SLOW_ROUNDS === 0 || !Number.isFinite(boundBytes) || this.#isTight)
        this.#shares.bound(await this.#bound());
      for (const [project, kept] of this.#projects) {
        const slow = kept.rested ? hasTurn(kept.indexed, this.#round) : this.#round % SLOW_ROUNDS === 1;
        const due = kept.next <= Date.now() || kept.bytes !== kept.swept || slow;
        if (kept.bytes > 0 && due) await this.#safely(project);
      }
      await this.#countUnderWay();
      await this.#evictOverLimits();
      await this.#serveWrites();
      await this.#writeShares();
    } catch (error) {
      this.#logger.warn({ err: error }, 'a round of the sweeper failed; the next round repeats it');
    }
  }

  get #isTight(): boolean {
    const { bytes, boundBytes } = this.#shares.usage;
    return bytes > boundBytes * TIGHT;
  }

  async #bound(): Promise<number> {
    const info = await withinLimit(this.#redis.info('memory'), this.#timings.commandMs);
    const fields = redisInfo(info);
    const figure = (name: string): number => Number(fields.get(name) ?? 0);
    const most = figure('maxmemory');
    const bound = this.#maxBytes ?? (most > 0 ? Math.floor(most * SHARE_OF_REDIS) : DEFAULT_BOUND);
    // Redis is nearly full. The bytes now count as the bound, so some runs are removed.
    const pressed = most > 0 && figure('used_memory') > most * REDIS_FULL;
    return pressed ? Math.min(bound, this.#shares.usage.bytes / FULL) : bound;
  }

  /** Reads the bytes of all projects that may have changed. */
  async #measure(): Promise<void> {
    const indexed = await this.#index.read();
    const gone = new Set(this.#projects.keys());
    for (const { name } of indexed) gone.delete(name);
    for (const project of gone) this.#projects.delete(project);
    const read = indexed.filter((project) => this.#mayHaveChanged(project));
    await withinLimit(Promise.all(read.map((project) => this.#read(project))), this.#timings.commandMs);
    this.#shares.count(this.#projects);
  }

  #mayHaveChanged(project: IndexedProject): boolean {
    const kept = this.#projects.get(project.name);
    return !kept?.rested || !project.idle || this.#isTight || hasTurn(project, this.#round + 1);
  }

  async #read(project: IndexedProject): Promise<void> {
    const { name, idle } = project;
    const prefix = projectPrefix(name);
    const keys = [prefix + names.bytes, prefix + names.share, prefix + names.wanted];
    const [bytes, written, wanted] = await this.#redis.mget(keys);
    const [share, flag] = written?.split(' ') ?? [];
    const read = {
      indexed: project,
      rested: idle,
      bytes: Math.max(0, Number(bytes ?? 0)),
      share: share === undefined ? undefined : Number(share),
      evictableWritten: flag === '1',
      wanted: Number(wanted ?? 0),
    };
    const kept = this.#projects.get(name);
    if (kept) Object.assign(kept, read);
    else this.#projects.set(name, { ...read, evictable: false, underWay: 0, swept: 0, oldest: 0, next: 0 });
  }

  /** Writes each project's share for the scripts that write runs. */
  async #writeShares(): Promise<void> {
    const redis = this.#redis;
    const timings = this.#timings;
    const writes: Promise<unknown>[] = [];
    for (const [project, kept] of this.#projects) {
      const share = this.#shares.shareOf(project);
      if (share === undefined) continue;
      const evictable = kept.evictable && kept.bytes > 0;
      const same = Math.abs(share - (kept.share ?? Number.POSITIVE_INFINITY)) <= share * CHANGED;
      if (same && evictable === kept.evictableWritten) continue;
      const write = redis.set(projectPrefix(project) + names.share, shareText(share, evictable));
      writes.push(write.then(() => Object.assign(kept, { share, evictableWritten: evictable })));
    }
    if (writes.length > 0) await withinLimit(Promise.all(writes), timings.commandMs);
  }

  /** Counts the runs under way of projects near their share. Their reserve matters only there. */
  async #countUnderWay(): Promise<void> {
    const redis = this.#redis;
    const timings = this.#timings;
    const counts = [...this.#projects].map(async ([project, kept]) => {
      kept.underWay = 0;
      if (kept.bytes < (this.#shares.shareOf(project) ?? Number.POSITIVE_INFINITY) * NEAR) return;
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
      const share = this.#shares.shareOf(project);
      if (kept.wanted === 0 || share === undefined) {
        kept.evictable = Number.isFinite(kept.oldest) && kept.oldest > 0;
        continue;
      }
      await withinLimit(this.#redis.del(projectPrefix(project) + names.wanted), this.#timings.commandMs);
      const before = kept.bytes;
      await this.#safely(project, Math.max(0, share - kept.wanted));
      kept.wanted = 0;
      // The remaining runs are promised or read, so a write that does not fit now is refused.
      kept.evictable = kept.bytes < before;
    }
  }

  async #evictOverLimits(): Promise<void> {
    for (const [project, { bytes }] of this.#projects) {
      const share = this.#shares.shareOf(project) ?? Number.POSITIVE_INFINITY;
      if (bytes > (share * TIGHT) / FULL) await this.#safely(project, (share * ROOMY) / FULL);
    }
    if (!this.#isTight) return;
    const shares = this.#shares;
    const aim = shares.usage.boundBytes * ROOMY;
    // The oldest runs go first, in any project. Each call removes only a part, because the oldest run may then belong to another project.
    for (let calls = 0; calls < MOST_CALLS && shares.usage.bytes > aim; calls++) {
      const [oldest] = [...this.#projects].sort(([, a], [, b]) => a.oldest - b.oldest);
      if (!oldest || !Number.isFinite(oldest[1].oldest)) return;
      const [project, kept] = oldest;
      const before = kept.bytes;
      await this.#safely(project, Math.max(0, before - Math.max(shares.usage.bytes - aim, 0)), 1);
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
    this.#shares.count(this.#projects);
    return swept.more;
  }
}
