// Contract 8: the states of a replica, as a table.

/** The number of runs in a `ready` replica is not part of its state. */
export type ReplicaState = 'spawning' | 'loading' | 'ready' | 'retiring' | 'draining' | 'failed' | 'exited';

/**
 * - `hello`: the process speaks the protocol
 * - `ready`: the app is imported and set up
 * - `failed`: the import, setup() or the start's time limit failed
 * - `stuck`: the replica cannot serve further runs, because a cancelled function keeps its thread or no file descriptor is left
 * - `drain`: no further runs start, and teardown() follows the last run
 * - `exit`: the process has ended
 */
export type ReplicaEvent = 'hello' | 'ready' | 'failed' | 'stuck' | 'drain' | 'exit';

/** The next state for each event. An event that is missing under a state has no effect. */
export const transitions: Readonly<Record<ReplicaState, Partial<Record<ReplicaEvent, ReplicaState>>>> = {
  spawning: { hello: 'loading', failed: 'failed', drain: 'failed', exit: 'exited' },
  loading: { ready: 'ready', failed: 'failed', drain: 'failed', exit: 'exited' },
  ready: { stuck: 'retiring', drain: 'draining', exit: 'exited' },
  retiring: { exit: 'exited' },
  draining: { exit: 'exited' },
  failed: { exit: 'exited' },
  exited: {},
};

/** Whether a replica in this state gets runs. */
export const takesRuns = (state: ReplicaState): boolean => state === 'ready';

/** Returns the state after `event`: the same state if the table has no entry. */
export const after = (state: ReplicaState, event: ReplicaEvent): ReplicaState => transitions[state][event] ?? state;
