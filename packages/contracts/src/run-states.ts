// Contract 5: the states of a run as one table. The store's scripts enforce each row, tests of packages/store check each row, and docs/runs.md shows them.
import type { RunState } from './runs.ts';

/** One transition between two states. */
export interface RunTransition {
  /** `none`: the run does not exist yet. */
  readonly from: RunState | 'none';
  readonly to: RunState;
  /** The script that makes the transition: a Lua file of packages/store/src. */
  readonly script: 'accept' | 'take' | 'end' | 'cancel' | 'unfollow' | 'reap';
  /** The cause of the transition. */
  readonly when: string;
}

/** All transitions. An ended run never changes its state. */
export const runTransitions: readonly RunTransition[] = [
  { from: 'none', to: 'queued', script: 'accept', when: 'a call is accepted' },
  { from: 'queued', to: 'running', script: 'take', when: 'a worker with a free slot takes the run' },
  { from: 'running', to: 'succeeded', script: 'end', when: 'the function returned' },
  {
    from: 'running',
    to: 'failed',
    script: 'end',
    when: 'the function raised, its process died, or the run exceeded a limit',
  },
  { from: 'running', to: 'cancelled', script: 'end', when: 'the function was interrupted after a cancel' },
  { from: 'running', to: 'timed_out', script: 'end', when: 'the run was longer than the app’s `timeout`' },
  {
    from: 'running',
    to: 'queued',
    script: 'end',
    when: 'its process died before the first item, the app has `retry_on_crash`, and the run was not cancelled: once',
  },
  { from: 'running', to: 'failed', script: 'reap', when: 'the lease of its worker expired (`worker_lost`)' },
  { from: 'queued', to: 'cancelled', script: 'cancel', when: 'a client cancelled the run, and it never starts' },
  {
    from: 'queued',
    to: 'cancelled',
    script: 'unfollow',
    when: 'its last reader disconnected, and its call has `onDisconnect=cancel`',
  },
  {
    from: 'queued',
    to: 'cancelled',
    script: 'reap',
    when: 'its time without a reader is over, or the gateways of its last readers died',
  },
  { from: 'queued', to: 'expired', script: 'reap', when: 'the run waited longer than the app’s `queue_timeout`' },
  {
    from: 'queued',
    to: 'failed',
    script: 'reap',
    when: 'no worker served its app for `WORKER_GRACE_S` (`unavailable`), or the app is broken (`app_failed_to_start`)',
  },
];
