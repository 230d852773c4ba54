// Takes queued runs for a worker's free slots, by take.lua.
import type { RunId } from '@inference-proxy/contracts';
import { readCall } from '../runs/codec.ts';
import { bytesIn, listIn, numberIn, type Script, type ScriptArgument, type ScriptReply, textIn } from '../scripts.ts';

/** One attempt of a run, leased to this worker. */
export interface TakenRun {
  readonly project: string;
  readonly app: string;
  readonly runId: RunId;
  readonly fn: string;
  /** The fence. Every write carries it. */
  readonly token: string;
  /** From 1. */
  readonly attempt: number;
  /** The queue of which the run was taken. */
  readonly queue: string;
  readonly paced: boolean;
  readonly promised: boolean;
  /** The app's version that the record names, if the take named a version. */
  readonly version?: string;
  readonly params: Buffer;
  /** W3C trace context of the call, if the call has one. */
  readonly traceparent?: string;
}

/** What a worker takes of one queue. */
export interface TakeRequest {
  readonly app: string;
  /** The queue, if it is not the app's only queue: {@link queueOf}. */
  readonly queue?: string | undefined;
  /** The number of runs. With 0, the worker stops waiting for the queue. */
  readonly slots: number;
  /** The app's version that the worker serves. The record of each taken run names this version. */
  readonly version?: string | undefined;
}

/** Returns the name of the queue of a deployed version. parts/run.lua has the same rule. */
export const queueOf = (app: string, version: string): string => `${app}@${version}`;

/** Returns the name of the queue of a request. */
export const queueIn = ({ app, queue = app }: Pick<TakeRequest, 'app' | 'queue'>): string => queue;

export interface TakeArguments {
  readonly workerId: string;
  /** Rising per worker and project. */
  readonly number: number;
  readonly leaseMs: number;
  /** Bytes of parameters at most. One run may exceed the limit. */
  readonly maxBytes: number;
  readonly requests: readonly TakeRequest[];
}

export interface TakeReply {
  /** Time of the answer by the store's clock, µs. */
  readonly at: number;
  /** A queue may hold further runs for these slots. */
  readonly more: boolean;
  readonly runs: readonly TakenOf[];
}

/** A run of a reply. `place`: the place of its queue in the requests, from 0. */
type TakenOf = Omit<TakenRun, 'project' | 'token' | 'version' | 'queue'> & { readonly place: number };

export const takeScript: Script<TakeArguments, TakeReply> = {
  name: 'take',
  encode: ({ workerId, number, leaseMs, maxBytes, requests }) => {
    const args: ScriptArgument[] = [workerId, number, leaseMs, maxBytes];
    for (const request of requests) args.push(queueIn(request), request.slots, request.version ?? '');
    return args;
  },
  decode: (reply) => {
    const [at, more, ...values] = listIn(reply);
    return { at: numberIn(at), more: more === 1, runs: runsIn(values) };
  },
};

/** Values of one run in the reply: id, call, number of the attempt, parameters, place of its queue (from 1). */
const VALUES = 5;

/** @param values the values of all runs, in one flat list */
function runsIn(values: readonly ScriptReply[]): TakeReply['runs'] {
  const runs: TakenOf[] = [];
  for (let n = 0; n < values.length; n += VALUES) {
    const { app, fn, paced, promised, traceparent } = readCall(textIn(values[n + 1]));
    runs.push({
      runId: textIn(values[n]),
      app,
      fn,
      attempt: Number(textIn(values[n + 2])),
      paced,
      promised,
      // A copy, because the reply may hold a megabyte of other runs' parameters, and a run may be long.
      params: Buffer.from(bytesIn(values[n + 3])),
      place: numberIn(values[n + 4]) - 1,
      ...(traceparent !== undefined && { traceparent }),
    });
  }
  return runs;
}
