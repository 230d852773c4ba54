// Keys, jobs and processes that must be gone when no call is under way.
import type { Redis } from 'ioredis';
import { ancestorsOf, processesIn } from './processes.ts';

/** The project of the suite's calls. */
const PROJECT = 'ip:{demo}:';
const HOSTS = 'ip:{*}:';
const QUEUES = ['{ip}:deliveries', '{ip}:deliveries-backlog'];

/** Returns open work in the store, and parts that count as alive although they are gone. @param alive the number of gateways and workers */
export async function leftInStore(redis: Redis, alive: { gateways: number; workers: number }): Promise<string[]> {
  const left: string[] = [];
  const say = (name: string, count: number): void => void (count > 0 && left.push(`${name}: ${count}`));
  for (const name of ['leases', 'due', 'absent']) say(name, await redis.zcard(PROJECT + name));
  for (const key of await redis.keys(`${PROJECT}queue:*`)) say(key, await redis.zcard(key));
  for (const key of await redis.keys(`${PROJECT}following:*`)) say(key, await redis.scard(key));
  // A cancel of a run that never came is kept for a minute, in a key that expires.
  if ((await redis.pttl(`${PROJECT}tombstones`)) === -1) left.push('tombstones that never go');
  const workers = new Set(await redis.zrange(`${PROJECT}workers`, '0', '-1'));
  say('workers too many', workers.size - alive.workers);
  say('gateways too many', (await redis.zcard(`${PROJECT}gateways`)) - alive.gateways);
  say('numbers of gateways too many', (await redis.hlen(`${PROJECT}numbers`)) - alive.gateways);
  for (const key of await redis.keys(`${PROJECT}waiting:*`)) {
    const gone = (await redis.zrange(key, '0', '-1')).filter((worker) => !workers.has(worker));
    say(`workers that are gone in ${key}`, gone.length);
  }
  for (const key of await redis.keys(`${PROJECT}took:*`)) {
    if (!workers.has(key.slice(`${PROJECT}took:`.length))) left.push(key);
  }
  for (const key of await redis.keys(`${HOSTS}open*`)) say(key, await redis.zcard(key));
  for (const key of await redis.keys(`${HOSTS}parked:*`)) say(key, await redis.zcard(key));
  for (const queue of QUEUES) {
    say(`${queue}:active`, await redis.llen(`${queue}:active`));
    say(`${queue}:wait`, await redis.llen(`${queue}:wait`));
  }
  return left;
}

/** Returns processes of functions whose worker is gone. Linux only. */
export async function leftProcesses(appsDir: string, workers: readonly number[]): Promise<string[]> {
  const left: string[] = [];
  for (const pid of await processesIn(appsDir)) {
    const ancestors = await ancestorsOf(pid);
    if (ancestors.length > 0 && !ancestors.some((one) => workers.includes(one)))
      left.push(`process ${pid} of a function`);
  }
  return left;
}
