// Contract 3: renews a gateway's lease and its place among the followers of its runs, by attend.lua.
import type { RunId } from '@inference-proxy/contracts';
import { listIn, numberIn, type Script, type ScriptArgument, textIn } from '../scripts.ts';
import type { FollowerMode } from './codec.ts';

export interface AttendArguments {
  readonly gatewayId: string;
  /** Rising per gateway. */
  readonly number: number;
  readonly leaseMs: number;
  readonly runs: readonly { readonly runId: RunId; readonly position: number; readonly mode: FollowerMode }[];
}

export interface AttendedRun {
  readonly ended: boolean;
  readonly lastItem: number;
  /** Known for followers of lines. */
  readonly lastLine: number;
}

export interface AttendReply {
  /** One answer per run; undefined if the run is gone. */
  readonly runs: readonly (AttendedRun | undefined)[];
  /** Number of open runs that the gateway follows. */
  readonly following: number;
}

/** Returns `stale` if a later call of this gateway was first. */
export const attendScript: Script<AttendArguments, 'stale' | AttendReply> = {
  name: 'attend',
  encode: ({ gatewayId, number, leaseMs, runs }) => {
    const args: ScriptArgument[] = [gatewayId, number, leaseMs];
    for (const { runId, position, mode } of runs) args.push(runId, position, mode);
    return args;
  },
  decode: (reply) => {
    const [stale, answers, following] = listIn(reply);
    if (stale === 1) return 'stale';
    return {
      runs: listIn(answers).map((answer) => {
        const [state, lastItem, lastLine = 0] = listIn(answer);
        if (state === undefined) return undefined;
        const word = textIn(state);
        const ended = word !== 'queued' && word !== 'running';
        return { ended, lastItem: numberIn(lastItem), lastLine: numberIn(lastLine) };
      }),
      following: numberIn(following),
    };
  },
};
