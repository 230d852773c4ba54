// docs/operations.md, "What is safe when": the death of Redis' process loses nothing, unless a flush has not come back from a slow disk.
import type { Redis } from 'ioredis';
import { until } from '../client/until.ts';

const LOOK_EVERY_MS = 1;
/** Of a file that is not written there are no such lines. */
const WAITS = /^aof_(?:pending_bio_fsync|buffer_length):[1-9]/m;

/** Resolves when all that Redis has answered until now is written to its file. */
export const flushed = (redis: Redis): Promise<true> =>
  until(async () => !WAITS.test(await redis.info('persistence')), LOOK_EVERY_MS);

/**
 * Under load a flush may begin between such a look and the death. Resolves when Redis, until it starts again, waits for no flush: what waited is
 * written before this is answered.
 */
export const withoutFlushes = (redis: Redis): Promise<unknown> => redis.config('SET', 'appendfsync', 'no');
