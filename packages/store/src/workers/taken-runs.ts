// Decodes the reply of lua/take: runs that are now leased to this worker.
import type { RunId } from '@inference-proxy/contracts';
import { readCall } from '../runs/call.ts';

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

/** Values of one run in the reply: id, call, number of the attempt, parameters. */
const VALUES = 4;

/**
 * @param versions the versions of the take, by app
 * @param values the values of all runs, in one flat list
 */
export function takenRuns(
  project: string,
  token: string,
  versions: ReadonlyMap<string, string | undefined>,
  values: readonly Buffer[],
): TakenRun[] {
  const runs: TakenRun[] = [];
  for (let at = 0; at + VALUES <= values.length; at += VALUES) {
    const [id, call, attempt, params] = values.slice(at, at + VALUES) as [Buffer, Buffer, Buffer, Buffer];
    const { app, fn, paced, promised, traceparent } = readCall(call.toString());
    const version = versions.get(app);
    runs.push({
      project,
      runId: id.toString(),
      app,
      fn,
      token,
      attempt: Number(attempt.toString()),
      paced,
      promised,
      // A copy, because the reply may hold a megabyte of other runs' parameters, and a run may be long.
      params: Buffer.from(params),
      ...(version !== undefined && { version }),
      ...(traceparent !== undefined && { traceparent }),
    });
  }
  return runs;
}
