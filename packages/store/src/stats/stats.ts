// Contract 5, "Statistics": reads the counters of ended runs by stats.lua, for a bounded number of apps and minutes.
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { listIn, numberIn, runScript, type Script, textIn } from '../scripts.ts';
import { Latencies } from './latencies.ts';

export interface StatsQuery {
  readonly windowMs: number;
  /** A multiple of a minute. */
  readonly stepMs: number;
  /** Reads this app alone. */
  readonly app?: string;
  /** Apps of one answer at most. */
  readonly limit: number;
  /** The app after which the answer begins. */
  readonly cursor?: string;
}

export interface AppStats {
  readonly app: string;
  /** By the number of the step, from 0. A step without ended runs is absent. */
  readonly steps: ReadonlyMap<number, Latencies>;
}

export interface Stats {
  /** Start of the first step and end of the last step, Unix ms. The last step contains the store's present time. */
  readonly since: number;
  readonly until: number;
  /** Apps with ended runs, by name. */
  readonly apps: readonly AppStats[];
  /** Set if further apps may follow. */
  readonly cursor?: string;
}

const MINUTE_MS = 60_000;
/** Minutes read in one call: under a millisecond of Redis. */
const PORTION = 120;
/** Minutes read for one answer, over its apps: five apps of a day. The first app is always read. */
const MOST_READ = 7_200;

interface StatsArguments {
  readonly app: string;
  readonly from: number;
  readonly minutes: number;
  readonly steps: number;
}

const statsScript: Script<StatsArguments, readonly (readonly [step: number, Latencies])[]> = {
  name: 'stats',
  encode: ({ app, from, minutes, steps }) => [app, from, minutes, steps],
  decode: (reply) =>
    listIn(reply).map((entry) => {
      const [step, values] = listIn(entry);
      const latencies = new Latencies();
      const fields = listIn(values);
      for (let n = 0; n < fields.length; n += 2) latencies.add(textIn(fields[n]), numberIn(fields[n + 1]));
      return [numberIn(step), latencies] as const;
    }),
};

/**
 * Returns the counters of a window, which ends with the present step.
 *
 * @param limitMs time limit of each call
 * @throws ServiceError `unavailable`
 */
export async function readStats(redis: Redis, project: string, query: StatsQuery, limitMs: number): Promise<Stats> {
  const { windowMs, stepMs, limit, cursor } = query;
  const [seconds] = await withinLimit(redis.time(), limitMs);
  const until = (Math.floor((Number(seconds) * 1000) / stepMs) + 1) * stepMs;
  const steps = Math.ceil(windowMs / stepMs);
  const since = until - steps * stepMs;
  const minutes = stepMs / MINUTE_MS;
  const counted = await withinLimit(
    redis.zrangebyscore(projectPrefix(project) + names.countedApps, since, '+inf'),
    limitMs,
  );
  const wanted = counted
    .filter((app) => (query.app === undefined || app === query.app) && (cursor === undefined || app > cursor))
    .sort();
  const most = Math.max(1, Math.min(limit, Math.floor(MOST_READ / (steps * minutes))));
  const apps: AppStats[] = [];
  for (const app of wanted.slice(0, most)) {
    const found = new Map<number, Latencies>();
    const portion = Math.max(1, Math.floor(PORTION / minutes));
    for (let first = 0; first < steps; first += portion) {
      const asked = { app, from: since + first * stepMs, minutes, steps: Math.min(portion, steps - first) };
      const read = await withinLimit(runScript(redis, statsScript, project, asked), limitMs);
      for (const [step, latencies] of read) found.set(first + step, latencies);
    }
    if (found.size > 0) apps.push({ app, steps: found });
  }
  return { since, until, apps, ...(wanted.length > most && { cursor: wanted[most - 1] as string }) };
}
