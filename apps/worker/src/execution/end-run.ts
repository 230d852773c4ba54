// Contract 5: ends an attempt. The call is repeated until the store confirms it or reports that another attempt holds the run.
import { type Outcome, ServiceError } from '@inference-proxy/contracts';
import { retry } from '@inference-proxy/retry';
import type { End, WorkerStore } from '@inference-proxy/store';
import type { AttemptKey } from './run-writer.ts';

const RETRY = { firstMs: 50, lastMs: 2_000 };
/** Tries with an error of this worker's own code. Another run of the same script call may have caused the error, so a repeat may succeed. */
const TRIES_WITH_A_FAULT = 5;

/**
 * The result of ending an attempt.
 *
 * - `refused`: the run ended as `output_too_large`, because its outcome did not fit into the project's share
 * - `lost`: another attempt holds the run
 * - `given_up`: the store did not answer before `signal` fired
 */
export type Ended = 'ended' | 'refused' | 'requeued' | 'lost' | 'given_up';

/** Returns the outcome of a run with lost items. The run ends as `internal`, because a stream must not have a hole. */
export const withGap = (outcome: Omit<Outcome, 'endedAt'>, last: number): Omit<Outcome, 'endedAt'> => ({
  state: 'failed',
  items: last,
  streamed: outcome.streamed,
  runTimeMs: outcome.runTimeMs,
  error: { code: 'internal', message: 'Items of this run were lost before they were stored safely.' },
});

/**
 * Ends an attempt. The store must have acknowledged all its items.
 *
 * @param end `retry` requeues the run, if that is still possible; otherwise the outcome counts
 * @param signal stops the retries; the lease then expires, as if this worker had died
 * @throws an error that is not the store's, after several tries
 */
export async function endRun(
  store: Pick<WorkerStore, 'end'>,
  attempt: AttemptKey,
  end: Omit<End, 'runId' | 'token'>,
  signal: AbortSignal,
): Promise<Ended> {
  const { project, runId, token } = attempt;
  let { outcome } = end;
  let faults = 0;
  const confirmed = async (): Promise<Ended> => {
    for (;;) {
      const answer = await store.end(project, { runId, token, ...end, outcome });
      if (answer.state !== 'behind') return answer.state;
      outcome = withGap(end.outcome, answer.last);
    }
  };
  const failed = (error: unknown): void => {
    if (!(error instanceof ServiceError) && ++faults === TRIES_WITH_A_FAULT) throw error;
  };
  try {
    return await retry(confirmed, { ...RETRY, signal, failed });
  } catch (error) {
    if (!signal.aborted) throw error;
    return 'given_up';
  }
}
