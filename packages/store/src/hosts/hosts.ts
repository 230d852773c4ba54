// Contract 4, "Isolation": dispatchers acquire and release slots of receivers, by hosts.lua.
import { codeIn, listIn, numberIn, type Script, type ScriptArgument, type ScriptReply, textIn } from '../scripts.ts';

/** The limits that both scripts of receivers need (parts/host-slots.lua). */
export interface HostLimits {
  readonly leaseMs: number;
  readonly perLine: number;
  readonly perHost: number;
  readonly probeMs: number;
  readonly perProject: number;
}

export const limitArguments = ({ leaseMs, perLine, perHost, probeMs, perProject }: HostLimits): ScriptArgument[] => [
  leaseMs,
  perLine,
  perHost,
  probeMs,
  perProject,
];

export interface HostStep {
  readonly kind: 'acquire' | 'release' | 'release_unused';
  readonly project: string;
  /** `host:port`. */
  readonly host: string;
  readonly runId: string;
  readonly attempt: number;
  readonly slot: string;
  readonly share: number;
  /** This process knows that the line has succeeded. */
  readonly succeeded: boolean;
  readonly flag: string;
}

const ANSWERS = [
  'open',
  'watched',
  'parked circuit_open',
  'parked host_busy',
  'parked project_busy',
  'released',
  'woke',
] as const;
export type HostAnswer = (typeof ANSWERS)[number];

/** A parked delivery that received a slot. */
export interface Woken {
  readonly project: string;
  readonly runId: string;
  readonly attempt: number;
  readonly host: string;
  readonly slot: string;
  /** Every outcome counts, because of a recent failure or because the line never succeeded. */
  readonly watched: boolean;
}

export function wokenIn(reply: ScriptReply | undefined): Woken[] {
  return listIn(reply).map((values) => {
    const [project, runId, attempt, host, slot, watched] = listIn(values);
    return {
      project: textIn(project),
      runId: textIn(runId),
      attempt: numberIn(attempt),
      host: textIn(host),
      slot: textIn(slot),
      watched: watched === 1,
    };
  });
}

export const hostsScript: Script<
  { limits: HostLimits; steps: readonly HostStep[] },
  { answers: HostAnswer[]; woken: Woken[] }
> = {
  name: 'hosts',
  encode: ({ limits, steps }) => {
    const args = limitArguments(limits);
    for (const { kind, project, host, runId, attempt, slot, share, succeeded, flag } of steps)
      args.push(kind, project, host, runId, attempt, slot, share, succeeded ? '1' : '', flag);
    return args;
  },
  decode: (reply) => {
    const [answers, woken] = listIn(reply);
    return { answers: listIn(answers).map((answer) => codeIn(answer, ANSWERS)), woken: wokenIn(woken) };
  },
};
