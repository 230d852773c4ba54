// Contract 1, "Idempotency": finds the run that holds a key.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';

export interface KeyHolder {
  readonly runId: RunId;
  /** Hash of the request that created the run. */
  readonly fingerprint: string;
}

/** @returns undefined if no kept run holds the key */
export async function readHolder(redis: Redis, project: string, key: string): Promise<KeyHolder | undefined> {
  const prefix = projectPrefix(project);
  const holder = await redis.get(prefix + names.idempotency + key);
  const [runId, fingerprint] = holder?.split(' ') ?? [];
  if (runId === undefined || fingerprint === undefined) return undefined;
  return (await redis.exists(prefix + names.run + runId)) === 1 ? { runId, fingerprint } : undefined;
}
