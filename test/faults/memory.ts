// How much memory each process has, by name, and Redis by its own word.
import { execFileSync } from 'node:child_process';
import { PARTS, type Place } from './place.ts';

const MIB = 1024 * 1024;

/** MiB, and how long the process has been there: many are young, for they were killed. */
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
  // What it grows by: plain runs are kept for 10 minutes, promised ones for a day, 24 MB of each cut-off gateway's burst among them.
  sizes['runs kept'] = String(await place.redis.zcard('ip:{demo}:runs'));
  return sizes;
}
