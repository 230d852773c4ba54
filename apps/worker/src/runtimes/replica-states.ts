// runtimes: the life of a replica, one process that runs functions, as a table.

/** How busy a `ready` replica is, is its number of runs and no state. */
export type ReplicaState = 'spawning' | 'loading' | 'ready' | 'retiring' | 'draining' | 'failed' | 'exited';

/**
 * - `hello`: the process speaks the protocol
 * - `ready`: the app is imported and set up
 * - `failed`: the import, setup() or the start's time limit failed
 * - `stuck`: it cannot go on: a cancelled function does not give its thread back, or functions have used up its file descriptors
 * - `drain`: no more runs; teardown() once the last has ended
 * - `exit`: the process is gone
 */
export type ReplicaEvent = 'hello' | 'ready' | 'failed' | 'stuck' | 'drain' | 'exit';

/** Which event leads where; an event that is missing under a state means nothing there. */
export const transitions: Readonly<Record<ReplicaState, Partial<Record<ReplicaEvent, ReplicaState>>>> = {
  spawning: { hello: 'loading', failed: 'failed', drain: 'failed', exit: 'exited' },
  loading: { ready: 'ready', failed: 'failed', drain: 'failed', exit: 'exited' },
  ready: { stuck: 'retiring', drain: 'draining', exit: 'exited' },
  retiring: { exit: 'exited' },
  draining: { exit: 'exited' },
  failed: { exit: 'exited' },
  exited: {},
};

/** Only such a replica is given runs. */
export const takesRuns = (state: ReplicaState): boolean => state === 'ready';

/** The state after `event`, which is the same state where the table says nothing. */
export const after = (state: ReplicaState, event: ReplicaEvent): ReplicaState => transitions[state][event] ?? state;
