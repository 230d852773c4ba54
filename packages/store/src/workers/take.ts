// Takes queued runs for a worker's free slots, by take.lua.
import type { RunId } from '@inference-proxy/contracts';
import { bytesIn, listIn, numberIn, type ScriptArgument, type ScriptReply, textIn } from '../message-pack.ts';
import type { Script } from '../redis-calls.ts';
import { readCall } from '../runs/codec.ts';

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
  readonly paced: boolean;
  readonly promised: boolean;
  /** The app's version that the record names, if the take named a version. */
  readonly version?: string;
  readonly params: Buffer;
  /** W3C trace context of the call, if the call has one. */
  readonly traceparent?: string;
}

/** What a worker takes of one app. */
export interface TakeRequest {
  readonly app: string;
  /** The number of runs. With 0, the worker stops waiting for the app. */
  readonly slots: number;
  /** The app's version that the worker serves. The record of each taken run names this version. */
  readonly version?: string | undefined;
}

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
  readonly runs: readonly Omit<TakenRun, 'project' | 'token'>[];
}

export const takeScript: Script<TakeArguments, TakeReply> = {
  name: 'take',
  encode: ({ workerId, number, leaseMs, maxBytes, requests }) => {
    const args: ScriptArgument[] = [workerId, number, leaseMs, maxBytes];
    for (const { app, slots, version = '' } of requests) args.push(app, slots, version);
    return args;
  },
  decode: (reply) => {
    const [at, more, ...values] = listIn(reply);
    return { at: numberIn(at), more: more === 1, runs: runsIn(values) };
  },
};

/** Values of one run in the reply: id, call, number of the attempt, parameters. */
const VALUES = 4;

/** @param values the values of all runs, in one flat list */
function runsIn(values: readonly ScriptReply[]): TakeReply['runs'] {
  const runs: Omit<TakenRun, 'project' | 'token'>[] = [];
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
      ...(traceparent !== undefined && { traceparent }),
    });
  }
  return runs;
}
