// Contract 5: a run as the look-up shows it.
import type { Outcome, RunId, RunState } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { outcomeOf } from './outcome-codec.ts';

/** Times are Unix milliseconds of the store's clock. */
export interface RunRecord {
  readonly runId: RunId;
  readonly app: string;
  readonly fn: string;
  readonly state: RunState;
  readonly acceptedAt: number;
  readonly queuedAt: number;
  readonly startedAt?: number;
  readonly firstItemAt?: number;
  readonly endedAt?: number;
  /** How many items there are. */
  readonly items: number;
  /** Set when the run has ended. A streamed result is its items, which are read apart. */
  readonly outcome?: Outcome;
  readonly webhook?: {
    readonly state: 'waiting' | 'pending' | 'delivered' | 'failed';
    readonly attempts: number;
    readonly nextAt?: number;
  };
}

const FIELDS = [
  'state',
  'app',
  'fn',
  'accepted',
  'queued',
  'started',
  'first',
  'ended',
  'items',
  'streamed',
  'ms',
  'status',
  'result',
  'error',
  'hook',
  'delivery',
  'tries',
  'next',
] as const;

const NOTHING = Buffer.alloc(0);

/** The record, or `undefined` where the run is unknown or past its retention. */
export async function readRecord(redis: Redis, project: string, runId: RunId): Promise<RunRecord | undefined> {
  const values = await redis.hmgetBuffer(projectPrefix(project) + names.run + runId, ...FIELDS);
  const text = (field: (typeof FIELDS)[number]): string | undefined => values[FIELDS.indexOf(field)]?.toString();
  const time = (field: (typeof FIELDS)[number]): number | undefined => {
    const value = text(field);
    return value === undefined ? undefined : Number(value);
  };
  const state = text('state') as RunState | undefined;
  if (state === undefined) return undefined;
  const startedAt = time('started');
  const firstItemAt = time('first');
  const endedAt = time('ended');
  const nextAt = time('next');
  const items = time('items') ?? 0;
  return {
    runId,
    app: text('app') as string,
    fn: text('fn') as string,
    state,
    acceptedAt: time('accepted') as number,
    queuedAt: time('queued') as number,
    ...(startedAt !== undefined && { startedAt }),
    ...(firstItemAt !== undefined && { firstItemAt }),
    items,
    ...(endedAt !== undefined && {
      endedAt,
      outcome: outcomeOf({
        state,
        items,
        streamed: text('streamed') === '1',
        runTimeMs: text('ms') ?? '0',
        endedAt,
        statusCode: time('status') ?? 0,
        result: values[FIELDS.indexOf('result')] ?? NOTHING,
        error: values[FIELDS.indexOf('error')] ?? NOTHING,
      }),
    }),
    ...(text('hook') !== undefined && {
      webhook: {
        state: (text('delivery') as 'pending' | undefined) ?? 'waiting',
        attempts: time('tries') ?? 0,
        ...(nextAt !== undefined && { nextAt }),
      },
    }),
  };
}

/** `onDisconnect=cancel` becomes `continue`. What is written once is read and removed: two steps are as good as one. */
export async function keepGoing(redis: Redis, project: string, runId: RunId): Promise<void> {
  const key = projectPrefix(project) + names.run + runId;
  if ((await redis.hget(key, 'absent')) === '0') await redis.hdel(key, 'absent');
}
