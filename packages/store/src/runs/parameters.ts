// Contract 5, "Parameters of a run": reads the parameters of a run that has not ended. The result replaces them.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { readCall } from './codec.ts';

/** Longer parameters are not read. */
const MOST_BYTES = 64 * 1024;

export type Parameters =
  | { readonly state: 'kept'; readonly bytes: Buffer }
  | { readonly state: 'absent'; readonly reason: 'ended' | 'too long' | 'request' };

/** Returns the parameters as the worker receives them, or undefined if the run is unknown or past its retention. */
export async function readParameters(redis: Redis, project: string, runId: RunId): Promise<Parameters | undefined> {
  const key = projectPrefix(project) + names.run + runId;
  const [call, length] = await Promise.all([redis.hget(key, 'call'), redis.hstrlen(key, 'body')]);
  if (call === null) return undefined;
  if (readCall(call).isRequest) return { state: 'absent', reason: 'request' };
  if (length > MOST_BYTES) return { state: 'absent', reason: 'too long' };
  // One command reads both, because the run may end in between.
  const [state, body] = await redis.hmgetBuffer(key, 'state', 'body');
  const isOpen = ['queued', 'running'].includes(String(state));
  return isOpen && body ? { state: 'kept', bytes: body } : { state: 'absent', reason: 'ended' };
}
