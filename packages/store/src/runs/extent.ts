// Contract 5, "Look-up: `GET /runs/{run_id}`": reads how far a run has come, without its items and result.
import type { RunId, RunState } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { readCall } from './call.ts';

export interface RunExtent {
  readonly app: string;
  readonly state: RunState;
  /** Number of items so far. */
  readonly items: number;
  /** Number of dropped items. They are the first items of the run. */
  readonly gone: number;
  /** Known after the run's end: the result is the list of its items. */
  readonly streamed: boolean;
}

/** Returns `undefined` if the run is unknown or past its retention. */
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
