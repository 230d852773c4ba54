// Contract 7, `abort_on_error_rate`: counts the ended calls of a version, and the failed calls among them.
import { errorKinds } from '@inference-proxy/contracts';
import type { CallCounts } from '@inference-proxy/store';
import type { RunEnd, RunListener } from '../runtimes/runtime.ts';

/** The lowest status of an answer for which the version is to blame. */
const SERVER_ERROR = 500;

/** Returns whether the version is to blame: errors of the caller and cancelled runs are no failures. */
function isFailure({ state, error, statusCode = 0, head }: RunEnd): boolean {
  if (state === 'succeeded') return Math.max(statusCode, head?.status ?? 0) >= SERVER_ERROR;
  return state !== 'cancelled' && (error === undefined || errorKinds[error.code].status >= SERVER_ERROR);
}

export class CallTally {
  #calls = 0;
  #failed = 0;

  get counts(): CallCounts {
    return { calls: this.#calls, failed: this.#failed };
  }

  /** Returns a listener that also counts the end of its run. */
  counting(listener: RunListener): RunListener {
    const ended = (end: RunEnd): void => {
      this.#calls++;
      if (isFailure(end)) this.#failed++;
      listener.ended(end);
    };
    return { ...listener, ended };
  }
}
