// docs/decisions/0019-the-file-is-rewritten.md: Redis' append-only file may hold what it cannot read again, and is written anew. Runs in every
// gateway; doubles are harmless.
import type { Redis } from 'ioredis';
import { rewrittenKey } from '../keys.ts';
import { redisInfo } from '../redis-info.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { Rounds } from './rounds.ts';

/** Between two rewrites that failed, and so that a Redis that does not allow it is not asked all the time. */
const AGAIN_MS = 30_000;
/** What Redis says where another gateway was first, or it rewrites by itself. */
const UNDER_WAY = /already in progress/;

/** What Redis tells of its file. */
interface FileState {
  readonly enabled: boolean;
  /** Which start of Redis, and how many commands it has refused since because it could not write: another value, and the file is in doubt. */
  readonly state: string;
  /** It cannot write, or is writing the whole of it just now: not the time. */
  readonly busy: boolean;
  readonly lastRewriteFailed: boolean;
}

export class AppendOnlyFile extends Rounds {
  /** The state that a rewrite has covered that is done. */
  private covered: string | undefined;
  /** The state that a line was written about: one line each. */
  private told: string | undefined;
  private notBefore = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly redis: Redis,
    private readonly logger: StoreLogger,
    private readonly timings: StoreTimings,
  ) {
    super(timings.reapMs);
  }

  /** Begins a rewrite where there is to be one. */
  protected override async look(): Promise<void> {
    try {
      await this.judge();
    } catch {
      // Redis is away, or cannot write: reap and the connection tell of that.
    }
  }

  private async judge(): Promise<void> {
    const { enabled, state, busy, lastRewriteFailed } = await this.fileState();
    if (!enabled || busy || state === this.covered) return;
    const asked = (await this.timely(this.redis.get(rewrittenKey))) === state;
    if (asked && !lastRewriteFailed) {
      this.covered = state;
      return;
    }
    if (performance.now() < this.notBefore) return;
    if (asked) this.failed(state, 'Redis did not finish it: its own log says why');
    await this.rewrite(state);
  }

  private async rewrite(state: string): Promise<void> {
    try {
      // Not within a limit: what is answered late has begun all the same.
      await this.redis.bgrewriteaof();
    } catch (error) {
      const { message } = error as Error;
      // One that began before what this is to cover, perhaps: the next look asks again.
      if (!UNDER_WAY.test(message)) this.failed(state, message);
      return;
    }
    await this.timely(this.redis.set(rewrittenKey, state));
  }

  private failed(state: string, reason: string): void {
    this.notBefore = performance.now() + AGAIN_MS;
    if (this.told === state) return;
    this.told = state;
    this.logger.warn(
      { reason },
      'Redis has started, or could not write, and its file was not rewritten (BGREWRITEAOF): it may not be able to read it again',
    );
  }

  private async fileState(): Promise<FileState> {
    const info = String(await this.timely(this.redis.call('INFO', 'server', 'persistence', 'errorstats')));
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
        // Then it refuses for another reason.
        is('rdb_last_bgsave_status') !== 'ok',
      lastRewriteFailed: is('aof_last_bgrewrite_status') !== 'ok',
    };
  }

  private timely<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.timings.commandMs);
  }
}
