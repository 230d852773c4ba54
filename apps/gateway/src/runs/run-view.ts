// Contract 5: the form of a run in the look-up and in the list, without its result. The look-up inserts the result as text and never parses it.
import { answerFields, errorObject } from '@inference-proxy/contracts';
import type { RunRecord } from '@inference-proxy/store';
import { isoTime } from '../http/values.ts';

export function runView(record: RunRecord): Record<string, unknown> {
  const { outcome, webhook } = record;
  return {
    run_id: record.runId,
    app: record.app,
    function: record.fn,
    ...(record.version !== undefined && { version: record.version }),
    status: record.state,
    accepted_at: isoTime(record.acceptedAt),
    queued_at: isoTime(record.queuedAt),
    ...(record.startedAt !== undefined && { started_at: isoTime(record.startedAt) }),
    ...(record.firstItemAt !== undefined && { first_item_at: isoTime(record.firstItemAt) }),
    ...(record.endedAt !== undefined && { ended_at: isoTime(record.endedAt) }),
    items: record.items,
    ...(outcome?.statusCode !== undefined && { status_code: outcome.statusCode }),
    ...answerFields(outcome ?? record),
    ...(outcome && { run_time_ms: Number(outcome.runTimeMs), timestamp: isoTime(outcome.endedAt) }),
    ...(webhook && {
      webhook: {
        state: webhook.state,
        attempts: webhook.attempts,
        ...(webhook.nextAt !== undefined && { next_attempt_at: isoTime(webhook.nextAt) }),
      },
    }),
    ...(outcome?.error && { error: errorObject(outcome.error) }),
  };
}
