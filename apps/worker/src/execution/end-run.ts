// The last word of an attempt: repeated until the store has it, or the attempt is known to be another's.
import { type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { WorkerStore } from '@inference-proxy/store';
import type { HeldAttempt } from './run-writer.ts';

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2_000;

/**
 * What became of the run. `refused`: it ended as `output_too_large`, because its outcome did not fit into the project's share; `lost`: it is not
 * this worker's to end; `given_up`: the store did not answer before `signal` fired.
 */
export type Ended = 'ended' | 'refused' | 'requeued' | 'lost' | 'given_up';

/** A gap that cannot be filled ends the run as `internal`: never a stream with a hole. */
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
 * Ends an attempt. All its items must be acknowledged.
 *
 * @param retry hand it back to the queue if that is still possible; the outcome counts where it is not
 * @param signal gives up: the lease's end then decides, as if this worker had died
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
