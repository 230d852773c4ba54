// Contract 5: the form of a run in the look-up and in the list, without its result. The look-up inserts the result as text and never parses it.
import { answerFields, errorObject } from '@inference-proxy/contracts';
import type { RunRecord } from '@inference-proxy/store';

const time = (ms: number): string => new Date(ms).toISOString();

export function runView(record: RunRecord): Record<string, unknown> {
  const { outcome, webhook } = record;
  return {
    run_id: record.runId,
    app: record.app,
    function: record.fn,
    status: record.state,
    accepted_at: time(record.acceptedAt),
    queued_at: time(record.queuedAt),
    ...(record.startedAt !== undefined && { started_at: time(record.startedAt) }),
    ...(record.firstItemAt !== undefined && { first_item_at: time(record.firstItemAt) }),
    ...(record.endedAt !== undefined && { ended_at: time(record.endedAt) }),
    items: record.items,
    ...(outcome?.statusCode !== undefined && { status_code: outcome.statusCode }),
    ...answerFields(outcome ?? record),
    ...(outcome && { run_time_ms: Number(outcome.runTimeMs), timestamp: time(outcome.endedAt) }),
    ...(webhook && {
      webhook: {
        state: webhook.state,
        attempts: webhook.attempts,
        ...(webhook.nextAt !== undefined && { next_attempt_at: time(webhook.nextAt) }),
      },
    }),
    ...(outcome?.error && { error: errorObject(outcome.error) }),
  };
}
