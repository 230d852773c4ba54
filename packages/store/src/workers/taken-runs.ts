// What lua/take answers: runs that are this worker's from now on.
import type { RunId } from '@inference-proxy/contracts';
import { readTerms } from '../runs/terms.ts';

/** One attempt of a run, leased to this worker. */
export interface TakenRun {
  readonly project: string;
  readonly app: string;
  readonly runId: RunId;
  readonly fn: string;
  /** The fence: every write names it. */
  readonly token: string;
  /** From 1. */
  readonly attempt: number;
  readonly paced: boolean;
  readonly promised: boolean;
  readonly params: Buffer;
  /** W3C trace context of the call, where there is one. */
  readonly traceparent?: string;
}

/** What is told of one run: id, app, function, attempt, terms, parameters. */
const VALUES = 6;

/** @param values of all runs, one after the other */
export function takenRuns(project: string, token: string, values: readonly Buffer[]): TakenRun[] {
  const runs: TakenRun[] = [];
  for (let at = 0; at + VALUES <= values.length; at += VALUES) {
    const text = (n: number): string => (values[at + n] as Buffer).toString();
    runs.push({
      project,
      runId: text(0),
      app: text(1),
      fn: text(2),
      token,
      attempt: Number(text(3)),
      ...readTerms(text(4)),
      // Of its own: the answer may hold a megabyte of others, and a run may be long.
      params: Buffer.from(values[at + 5] as Buffer),
    });
  }
  return runs;
}
