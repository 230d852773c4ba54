// Renews the leases of a worker and of its attempts, by renew.lua.
import type { RunId } from '@inference-proxy/contracts';
import { listIn, numberIn, type Script, type ScriptArgument } from '../scripts.ts';

export type RenewAnswer =
  | { readonly state: 'held'; readonly position: number; readonly cancel: boolean }
  | { readonly state: 'lost' };

export interface RenewArguments {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly apps: readonly string[];
  readonly runs: readonly { readonly runId: RunId; readonly token: string }[];
}

export interface RenewReply {
  /** The worker must announce its apps again. */
  readonly unknown: boolean;
  /** One answer per run. */
  readonly answers: readonly RenewAnswer[];
}

export const renewScript: Script<RenewArguments, RenewReply> = {
  name: 'renew',
  encode: ({ workerId, leaseMs, apps, runs }) => {
    const args: ScriptArgument[] = [workerId, leaseMs, apps.length, ...apps];
    for (const { runId, token } of runs) args.push(runId, token);
    return args;
  },
  decode: (reply) => {
    const [unknown, answers] = listIn(reply);
    return {
      unknown: unknown === 1,
      answers: listIn(answers).map((answer) => {
        const [held, position, cancel] = listIn(answer);
        return held === 1 ? { state: 'held', position: numberIn(position), cancel: cancel === 1 } : { state: 'lost' };
      }),
    };
  },
};
