// Contract 7, "Apps": counts the queued and the running runs of apps, by open-runs.lua.
import { listIn, numberIn, type Script } from '../scripts.ts';

/** Running runs examined: under a millisecond of Redis. Beyond them, `running` is too small. */
const MOST_EXAMINED = 1_000;

export interface OpenRuns {
  readonly queued: number;
  readonly running: number;
}

/** Takes names of apps. Returns the counts in the same order. */
export const openRunsScript: Script<readonly string[], OpenRuns[]> = {
  name: 'open-runs',
  encode: (apps) => [MOST_EXAMINED, ...apps],
  decode: (reply) => {
    const counts = listIn(reply);
    return Array.from({ length: counts.length / 2 }, (_, at) => ({
      queued: numberIn(counts[2 * at]),
      running: numberIn(counts[2 * at + 1]),
    }));
  },
};
