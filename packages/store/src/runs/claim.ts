// Contract 1, "Idempotency": finds the run that has claimed a key.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';

export interface KeyClaim {
  readonly runId: RunId;
  /** Hash of the request that created the run. */
  readonly fingerprint: string;
}

/** @returns undefined if no kept run has claimed the key */
export async function readClaim(redis: Redis, project: string, key: string): Promise<KeyClaim | undefined> {
  const prefix = projectPrefix(project);
  const claim = await redis.get(prefix + names.idempotency + key);
  const [runId, fingerprint] = claim?.split(' ') ?? [];
  if (runId === undefined || fingerprint === undefined) return undefined;
  return (await redis.exists(prefix + names.run + runId)) === 1 ? { runId, fingerprint } : undefined;
}
