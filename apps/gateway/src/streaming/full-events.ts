// Contract 3 (`events=full`): what the events say that are no items. Pure.
import type { Outcome, RunId } from '@inference-proxy/contracts';

const time = (ms: number): string => new Date(ms).toISOString();

/** `started`. @param at Unix ms */
export const startedData = (runId: RunId, at: number): object => ({ run_id: runId, started_at: time(at) });

/** `done`: the envelope without the items. */
export const doneData = (runId: RunId, { state, runTimeMs, endedAt }: Outcome): object => ({
  run_id: runId,
  status: state,
  run_time_ms: Number(runTimeMs),
  timestamp: time(endedAt),
});

/** `log`, here and where logs are followed. @param line `at` is Unix ms */
export const logData = ({ at, stream, text }: { at: number; stream: string; text: string }): object => ({
  stream,
  time: time(at),
  text,
});
