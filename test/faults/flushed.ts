// docs/operations.md, "What is safe when": the death of Redis' process loses nothing, unless a flush has not come back from a slow disk.
import type { Redis } from 'ioredis';

/**
 * Resolves when no write waits in Redis' process for its file, nor will until Redis starts again: without flushes none is waited for, and what
 * waited is written before this is answered.
 */
export const flushed = (redis: Redis): Promise<unknown> => redis.config('SET', 'appendfsync', 'no');
