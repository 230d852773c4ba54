// Contract 5, "Parameters of a run": reads the parameters of a run. Until the end, the field `body` has them. Then the result takes their
// place, and parameters of up to 64 KiB are in the field `in` (parts/ending.lua).
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { readCall } from './codec.ts';

/** Longer parameters are neither read nor kept after the end. */
const MOST_BYTES = 64 * 1024;

export type Parameters =
  | { readonly state: 'kept'; readonly bytes: Buffer }
  | { readonly state: 'absent'; readonly reason: 'not kept' | 'too long' | 'request' };

/** Returns the parameters as the worker receives them, or undefined if the run is unknown or past its retention. */
export async function readParameters(redis: Redis, project: string, runId: RunId): Promise<Parameters | undefined> {
  const key = projectPrefix(project) + names.run + runId;
  const [call, length] = await Promise.all([redis.hget(key, 'call'), redis.hstrlen(key, 'body')]);
  if (call === null) return undefined;
  if (readCall(call).isRequest) return { state: 'absent', reason: 'request' };
  const isLong = length > MOST_BYTES;
  // One command reads all, because the run may end in between.
  const [state, kept, body] = await redis.hmgetBuffer(key, 'state', 'in', ...(isLong ? [] : ['body']));
  if (kept) return { state: 'kept', bytes: kept };
  if (!['queued', 'running'].includes(String(state))) return { state: 'absent', reason: 'not kept' };
  return body ? { state: 'kept', bytes: body } : { state: 'absent', reason: 'too long' };
}
