// The memory of each process, by name. Redis reports its own.
import { execFileSync } from 'node:child_process';
import { PARTS, type Place } from './place.ts';

const MIB = 1024 * 1024;

/** MiB, and the age of the process: many processes are young because a fault killed them. */
export async function memoryOf(place: Place): Promise<Record<string, string>> {
  const sizes: Record<string, string> = {};
  for (const part of [...PARTS, 'redis'] as const) {
    const [kib, age] = execFileSync('ps', ['-o', 'rss=,etimes=', '-p', String(place.stack.pid(part))])
      .toString()
      .trim()
      .split(/\s+/);
    sizes[part] = `${Math.round(Number(kib) / 1024)} MiB at ${age} s`;
  }
  const used = Number(/used_memory:(\d+)/.exec(await place.redis.info('memory'))?.[1]);
  sizes['redis, used_memory'] = `${(used / MIB).toFixed(1)} MiB`;
  // Reasons for growth: plain runs are kept for 10 minutes, promised runs for a day, with 24 MB for each gateway burst.
  sizes['runs kept'] = String(await place.redis.zcard('ip:{demo}:runs'));
  return sizes;
}
