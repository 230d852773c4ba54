// docs/decisions/0019-the-file-is-rewritten.md: rewrites Redis' append-only file, which may hold bytes that Redis cannot read again.
// Runs in every gateway. Doubles are harmless.
import type { Redis } from 'ioredis';
import { rewrittenKey } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { redisInfo } from '../redis-info.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import type { MaintenanceParts } from './project-index.ts';
import type { Task } from './rounds.ts';

/** Time between two failed rewrites. It also spares a Redis that does not allow the command. */
const AGAIN_MS = 30_000;
/** The answer of Redis if another gateway was first, or if Redis has begun a rewrite by itself. */
const UNDER_WAY = /already in progress/;

/** The state of the file as Redis reports it. */
interface FileState {
  readonly enabled: boolean;
  /** The start of Redis, and the number of commands it has refused since because it could not write. If this value changes, the file is in doubt. */
  readonly state: string;
  /** Redis cannot write, or is rewriting the file now. A rewrite must wait. */
  readonly busy: boolean;
  readonly lastRewriteFailed: boolean;
}

export class AppendOnlyFile implements Task {
  readonly everyMs: number;
  /** The state that a finished rewrite has covered. */
  #covered: string | undefined;
  /** The state of the last warning. Each state is logged once. */
  #reportedState: string | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;

  readonly #redis: Redis;
  readonly #logger: StoreLogger;
  readonly #timings: StoreTimings;

  constructor({ redis, logger, timings }: MaintenanceParts) {
    this.everyMs = timings.reapMs;
    this.#redis = redis;
    this.#logger = logger;
    this.#timings = timings;
  }

  /** Begins a rewrite if the file needs one. */
  async run(): Promise<void> {
    try {
      await this.#judge();
    } catch {
      // Redis is away or cannot write. Reap and the connection report this.
    }
  }

  async #judge(): Promise<void> {
    const { enabled, state, busy, lastRewriteFailed } = await this.#fileState();
    if (!enabled || busy || state === this.#covered) return;
    const asked = (await this.#timely(this.#redis.get(rewrittenKey))) === state;
    if (asked && !lastRewriteFailed) {
      this.#covered = state;
      return;
    }
    if (performance.now() < this.#notBefore) return;
    if (asked) this.#failed(state, 'Redis did not finish the rewrite; its log has the reason');
    await this.#rewrite(state);
  }

  async #rewrite(state: string): Promise<void> {
    try {
      // No time limit: Redis may have begun a rewrite whose answer is late.
      await this.#redis.bgrewriteaof();
    } catch (error) {
      const { message } = error as Error;
      // The running rewrite may have begun before the state that this rewrite must cover. The next round asks again.
      if (!UNDER_WAY.test(message)) this.#failed(state, message);
      return;
    }
    await this.#timely(this.#redis.set(rewrittenKey, state));
  }

  #failed(state: string, reason: string): void {
    this.#notBefore = performance.now() + AGAIN_MS;
    if (this.#reportedState === state) return;
    this.#reportedState = state;
    this.#logger.warn(
      { reason },
      'the append-only file may be unreadable for Redis after a start or a failed write, and its rewrite (BGREWRITEAOF) failed',
    );
  }

  async #fileState(): Promise<FileState> {
    const info = String(await this.#timely(this.#redis.call('INFO', 'server', 'persistence', 'errorstats')));
    const fields = redisInfo(info);
    const is = (name: string): string => fields.get(name) ?? '';
    return {
      enabled: is('aof_enabled') === '1',
      state: `${is('run_id')} ${is('errorstat_MISCONF').replace('count=', '') || 0}`,
      busy:
        is('loading') === '1' ||
        is('aof_last_write_status') !== 'ok' ||
        is('aof_rewrite_in_progress') === '1' ||
        is('aof_rewrite_scheduled') === '1' ||
        // Redis refuses writes for another reason, a failed snapshot.
        is('rdb_last_bgsave_status') !== 'ok',
      lastRewriteFailed: is('aof_last_bgrewrite_status') !== 'ok',
    };
  }

  #timely<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.#timings.commandMs);
  }
}
