// Contract 5, "Look-up: `GET /runs/{run_id}`": reads the record of a run.
import { type AnswerHead, decodeHead, type Outcome, type RunId, type RunState } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { outcomeOf, readAttempt, readCall } from './codec.ts';
import { RESULT_BYTES } from './result.ts';

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
  /** Number of the current attempt, from 1; 0 if no attempt has started. */
  readonly attempt: number;
  /** The app's version that executed the last attempt. Absent before the first attempt. */
  readonly version?: string;
  /** Number of items so far. */
  readonly items: number;
  /** Number of dropped items of a long plain stream. They are the first items of the run. Above 0, the run has no result. */
  readonly gone: number;
  /** The head of a custom runtime's answer. Known after its stream has begun or the run has ended. Absent in a list. */
  readonly head?: AnswerHead;
  /** Set if the run has ended. A streamed result is the run's items, which are read separately. A list has no results at all. */
  readonly outcome?: Outcome;
  readonly webhook?: {
    readonly state: 'waiting' | 'pending' | 'delivered' | 'failed';
    readonly attempts: number;
    readonly nextAt?: number;
  };
}

/** Fields of a record that a list shows. */
export const LISTED = [
  'state',
  'call',
  'queued',
  'first',
  'ended',
  'attempt',
  'v',
  'items',
  'gone',
  'streamed',
  'ms',
  'status',
  'error',
  'hook',
  'delivery',
  'tries',
  'next',
] as const;

const FIELDS = [...LISTED, 'head'] as const;

const NOTHING = Buffer.alloc(0);

/** Returns the record, or `undefined` if the run is unknown or past its retention. */
export async function readRecord(redis: Redis, project: string, runId: RunId): Promise<RunRecord | undefined> {
  const key = projectPrefix(project) + names.run + runId;
  // `body` holds the parameters until the run has ended, then the result. So its length is read after the state.
  const [values, bytes] = await Promise.all([redis.hmgetBuffer(key, ...FIELDS), redis.hstrlen(key, 'body')]);
  const record = recordOf(runId, values);
  if (!record?.outcome || record.outcome.error || bytes === 0) return record;
  if (bytes > RESULT_BYTES) return { ...record, outcome: { ...record.outcome, resultBytes: bytes } };
  const result = await redis.hgetBuffer(key, 'body');
  return result === null ? undefined : { ...record, outcome: { ...record.outcome, result } };
}

/** @param values values of `LISTED`, optionally followed by the head */
export function recordOf(runId: RunId, values: readonly (Buffer | null)[]): RunRecord | undefined {
  const text = (field: (typeof FIELDS)[number]): string | undefined => values[FIELDS.indexOf(field)]?.toString();
  const time = (field: (typeof FIELDS)[number]): number | undefined => {
    const value = text(field);
    return value === undefined ? undefined : Number(value);
  };
  const state = text('state') as RunState | undefined;
  const call = text('call');
  // A record without a call was written by an earlier version.
  if (state === undefined || call === undefined) return undefined;
  const { app, fn, acceptedAt } = readCall(call);
  const { number: attempt, startedAt } = readAttempt(text('attempt'));
  const version = text('v') ?? '';
  const firstItemAt = time('first');
  const endedAt = time('ended');
  const nextAt = time('next');
  const items = time('items') ?? 0;
  const head = values[FIELDS.indexOf('head')] ?? NOTHING;
  return {
    runId,
    app,
    fn,
    state,
    acceptedAt,
    // Written only if the run went back to the queue.
    queuedAt: time('queued') ?? acceptedAt,
    ...(startedAt !== undefined && { startedAt }),
    ...(firstItemAt !== undefined && { firstItemAt }),
    attempt,
    ...(version !== '' && { version }),
    items,
    gone: time('gone') ?? 0,
    ...(head.length > 0 && { head: decodeHead(head.toString()) }),
    ...(endedAt !== undefined && {
      endedAt,
      outcome: outcomeOf({
        state,
        items,
        streamed: text('streamed') === '1',
        runTimeMs: text('ms') ?? '0',
        endedAt,
        statusCode: time('status') ?? 0,
        result: NOTHING,
        error: values[FIELDS.indexOf('error')] ?? NOTHING,
        head,
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

export interface RunProgress {
  readonly preformatted: boolean;
  readonly state: RunState;
  /** Number of items so far. */
  readonly items: number;
  /** Number of dropped items. They are the first items of the run. */
  readonly gone: number;
  /** Known after the run's end: the result is the list of its items. */
  readonly streamed: boolean;
}

/** Reads how far a run has come, without its items and result. Returns `undefined` if the run is unknown or past its retention. */
export async function readProgress(redis: Redis, project: string, runId: RunId): Promise<RunProgress | undefined> {
  const key = projectPrefix(project) + names.run + runId;
  const [call, state, items, gone, streamed] = await redis.hmget(key, 'call', 'state', 'items', 'gone', 'streamed');
  if (call == null || state == null) return undefined;
  return {
    preformatted: readCall(call).preformatted,
    state: state as RunState,
    items: Number(items ?? 0),
    gone: Number(gone ?? 0),
    streamed: streamed === '1',
  };
}
