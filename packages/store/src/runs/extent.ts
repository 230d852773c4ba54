// Contract 5: how far a run has come, without what it made.
import type { RunId, RunState } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { readCall } from './call.ts';

export interface RunExtent {
  readonly app: string;
  readonly state: RunState;
  /** How many items there are so far. */
  readonly items: number;
  /** How many of them are kept no longer, from the first one on. */
  readonly gone: number;
  /** Known once it has ended: whether its result is the list of its items. */
  readonly streamed: boolean;
}

/** `undefined` where the run is unknown or past its retention. */
export async function readExtent(redis: Redis, project: string, runId: RunId): Promise<RunExtent | undefined> {
  const key = projectPrefix(project) + names.run + runId;
  const [call, state, items, gone, streamed] = await redis.hmget(key, 'call', 'state', 'items', 'gone', 'streamed');
  if (call == null || state == null) return undefined;
  return {
    app: readCall(call).app,
    state: state as RunState,
    items: Number(items ?? 0),
    gone: Number(gone ?? 0),
    streamed: streamed === '1',
  };
}
