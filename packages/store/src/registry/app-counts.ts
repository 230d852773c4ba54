// Contract 7, "Apps": counts the open runs of apps and their replicas on all live workers, by app-counts.lua.
import { listIn, numberIn, type Script } from '../scripts.ts';

/** Running runs examined: under a millisecond of Redis. Beyond them, `running` is too small. */
const MOST_EXAMINED = 1_000;
const COUNTS_OF_AN_APP = 4;

/** Numbers of processes of an app. */
export interface ReplicaCounts {
  /** Replicas that take runs. */
  readonly ready: number;
  /** Replicas that should run. */
  readonly desired: number;
}

export interface AppCounts {
  readonly runs: { readonly queued: number; readonly running: number };
  readonly replicas: ReplicaCounts;
}

/** Takes names of apps. Returns the counts in the same order. */
export const appCountsScript: Script<readonly string[], AppCounts[]> = {
  name: 'app-counts',
  encode: (apps) => [MOST_EXAMINED, ...apps],
  decode: (reply) => {
    const counts = listIn(reply).map(numberIn);
    const of = (at: number, nth: number): number => counts[COUNTS_OF_AN_APP * at + nth] ?? 0;
    return Array.from({ length: counts.length / COUNTS_OF_AN_APP }, (_, at) => ({
      runs: { queued: of(at, 0), running: of(at, 1) },
      replicas: { ready: of(at, 2), desired: of(at, 3) },
    }));
  },
};
