// docs/operations/failures.md, "What is safe when": the death of Redis' process loses no write, unless a slow disk holds a flush back.
import type { Redis } from 'ioredis';
import { until } from '../client/until.ts';

const LOOK_EVERY_MS = 1;
/** `INFO` has these lines only if Redis writes a file. */
const WAITS = /^aof_(?:pending_bio_fsync|buffer_length):[1-9]/m;

/** Resolves when every answered command is written to the file. */
export const flushed = (redis: Redis): Promise<true> =>
  until(async () => !WAITS.test(await redis.info('persistence')), LOOK_EVERY_MS);

/**
 * Under load a flush may begin between the look and the death. Resolves when Redis, until its next start, waits for no flush. Waiting writes
 * are written before this is answered.
 */
export const withoutFlushes = (redis: Redis): Promise<unknown> => redis.config('SET', 'appendfsync', 'no');
