// Contract 5: the states of a run as one table. The store's scripts enforce each row, tests of packages/store check each row, and docs/runs.md shows them.
import type { RunState } from './runs.ts';

/** One transition between two states. */
export interface RunTransition {
  /** `none`: the run does not exist yet. */
  readonly from: RunState | 'none';
  readonly to: RunState;
  /** The script that makes the transition: a file of packages/store/lua. */
  readonly script: 'accept' | 'take' | 'end' | 'cancel' | 'unfollow' | 'reap';
  /** The cause of the transition. */
  readonly when: string;
}

/** All transitions. An ended run never changes its state. */
export const runTransitions: readonly RunTransition[] = [
  { from: 'none', to: 'queued', script: 'accept', when: 'a call is accepted' },
  { from: 'queued', to: 'running', script: 'take', when: 'a worker with a free slot takes it' },
  { from: 'running', to: 'succeeded', script: 'end', when: 'the function returned' },
  {
    from: 'running',
    to: 'failed',
    script: 'end',
    when: 'the function raised, its process died, or a limit was passed',
  },
  { from: 'running', to: 'cancelled', script: 'end', when: 'the function was interrupted after a cancel' },
  { from: 'running', to: 'timed_out', script: 'end', when: 'it went on for longer than the app’s `timeout`' },
  {
    from: 'running',
    to: 'queued',
    script: 'end',
    when: 'its process died, the app says `retry_on_crash`, no item had left and nobody cancelled: once',
  },
  { from: 'running', to: 'failed', script: 'reap', when: 'its worker vanished (`worker_lost`)' },
  { from: 'queued', to: 'cancelled', script: 'cancel', when: 'somebody asked for it: it never starts' },
  {
    from: 'queued',
    to: 'cancelled',
    script: 'unfollow',
    when: 'its last reader left, and it was called so that this cancels at once',
  },
  {
    from: 'queued',
    to: 'cancelled',
    script: 'reap',
    when: 'its time without a reader was up, or the gateways of its last readers died',
  },
  { from: 'queued', to: 'expired', script: 'reap', when: 'it waited longer than the app’s `queue_timeout`' },
  {
    from: 'queued',
    to: 'failed',
    script: 'reap',
    when: 'no worker served its app for `WORKER_GRACE_S` (`unavailable`), or the app is broken (`app_failed_to_start`)',
  },
];
