// Contract 5, "Cancel: `POST /runs/{run_id}/cancel`": cancels a run, by cancel.lua.
import type { RunId } from '@inference-proxy/contracts';
import { codeIn, listIn } from '../message-pack.ts';
import type { Script } from '../redis-calls.ts';

/** The state of a run before its cancel. */
export type CancelledFrom = 'queued' | 'running' | 'ended' | 'unknown';

export interface CancelArguments {
  readonly handoverMs: number;
  /** Time for which the cancel of an unknown run is remembered; 0: not at all. */
  readonly tombstoneMs: number;
  readonly runId: RunId;
  /** A repeated request gets its first answer. */
  readonly requestId: string;
}

export const cancelScript: Script<CancelArguments, { from: CancelledFrom; webhookDue: boolean }> = {
  name: 'cancel',
  encode: ({ handoverMs, tombstoneMs, runId, requestId }) => [handoverMs, tombstoneMs, runId, requestId],
  decode: (reply) => {
    const [from, due] = listIn(listIn(reply)[0]);
    return { from: codeIn(from, ['queued', 'running', 'ended', 'unknown']), webhookDue: due === 1 };
  },
};
