// Ends what dead workers and gateways left in a project, by reap.lua.
import type { RunId } from '@inference-proxy/contracts';
import { listIn, numberIn, type Script, textIn } from '../scripts.ts';

export interface ReapArguments {
  /** A longer gap between two reaps is a pause of Redis. */
  readonly pauseMs: number;
  readonly leaseMs: number;
  readonly workerGraceMs: number;
  readonly handoverMs: number;
  /** Runs handled at most, per kind. */
  readonly most: number;
  readonly staleMs: number;
  /** Removes the last keys of an empty project. */
  readonly removeEmpty: boolean;
}

/** `idle`: nothing is open. `empty`: the project has nothing at all. */
export type ProjectState = 'open' | 'idle' | 'empty';

/** The states by their numbers in reap.lua. */
const STATES: readonly ProjectState[] = ['open', 'idle', 'empty'];

export interface Reaped {
  readonly state: ProjectState;
  /** Runs that ended here and have a due webhook. */
  readonly due: readonly RunId[];
  readonly overdue: readonly { readonly runId: RunId; readonly attempt: number }[];
  /** Number of runs that ended, were cancelled, or lost a reader of a dead gateway. */
  readonly changes: number;
}

export const reapScript: Script<ReapArguments, Reaped> = {
  name: 'reap',
  encode: ({ pauseMs, leaseMs, workerGraceMs, handoverMs, most, staleMs, removeEmpty }) => [
    pauseMs,
    leaseMs,
    workerGraceMs,
    handoverMs,
    most,
    staleMs,
    removeEmpty ? 1 : 0,
  ],
  decode: (reply) => {
    const [idle, due, overdue, changes] = listIn(reply);
    return {
      state: STATES[numberIn(idle)] ?? 'open',
      due: listIn(due).map(textIn),
      overdue: listIn(overdue).map((delivery) => {
        const [runId, attempt] = listIn(delivery);
        return { runId: textIn(runId), attempt: numberIn(attempt) };
      }),
      changes: numberIn(changes),
    };
  },
};
