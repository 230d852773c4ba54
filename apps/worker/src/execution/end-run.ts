// Contract 5: ends an attempt. The call is repeated until the store confirms it or reports that another attempt holds the run.
import { type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { WorkerStore } from '@inference-proxy/store';
import type { HeldAttempt } from './run-writer.ts';

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2_000;

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

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });

/**
 * Ends an attempt. The store must have acknowledged all its items.
 *
 * @param retry true to requeue the run, if that is still possible; otherwise the outcome counts
 * @param signal stops the retries; the lease then expires, as if this worker had died
 */
export async function endRun(
  store: Pick<WorkerStore, 'end'>,
  attempt: HeldAttempt,
  outcome: Omit<Outcome, 'endedAt'>,
  retry: boolean,
  signal: AbortSignal,
): Promise<Ended> {
  const { project, runId, token } = attempt;
  let said = outcome;
  for (let wait = FIRST_RETRY_MS; !signal.aborted; wait = Math.min(wait * 2, LAST_RETRY_MS)) {
    try {
      const answer = await store.end(project, { runId, token, outcome: said, retry });
      if (answer.state !== 'behind') return answer.state;
      said = withGap(outcome, answer.last);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      await pause(wait, signal);
    }
  }
  return 'given_up';
}
