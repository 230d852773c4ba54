// Contract 3, "The rich stream: `?events=full`": the data of events that are not items. Pure.
import type { Outcome, RunId } from '@inference-proxy/contracts';
import { isoTime } from '../http/values.ts';

/** Returns the data of `started`. @param at Unix ms */
export const startedData = (runId: RunId, at: number): object => ({ run_id: runId, started_at: isoTime(at) });

/** Returns the data of `done`: the envelope without the items. */
export const doneData = (runId: RunId, { state, runTimeMs, endedAt }: Outcome): object => ({
  run_id: runId,
  status: state,
  run_time_ms: Number(runTimeMs),
  timestamp: isoTime(endedAt),
});

/** Returns the data of `log`, for rich streams and for log streams. @param line `at` is Unix ms */
export const logData = ({ at, stream, text }: { at: number; stream: string; text: string }): object => ({
  stream,
  time: isoTime(at),
  text,
});
