// Waits for a gateway's rewrite of Redis' append-only file (docs/decisions/0019-the-file-is-rewritten.md).
import type { Redis } from 'ioredis';
import { until } from '../client/until.ts';

/** Resolves when the file was rewritten after Redis' start and after its last failed write. Resolves at once if Redis has no file. */
export async function rewritten(redis: Redis): Promise<void> {
  await until(async () => {
    const info = String(await redis.call('INFO', 'server', 'persistence', 'errorstats'));
    const is = (name: string): string => new RegExp(`^${name}:(?:count=)?(\\w+)`, 'm').exec(info)?.[1] ?? '0';
    if (is('aof_enabled') === '0') return true;
    const busy = is('aof_rewrite_in_progress') === '1' || is('aof_last_bgrewrite_status') !== 'ok';
    return !busy && (await redis.get('ip:rewritten')) === `${is('run_id')} ${is('errorstat_MISCONF')}`;
  });
}
