// Contract 8: the interface between a pool and its replicas. Every kind of replica implements the interface.
import type { ErrorFields, FunctionSpec, RunId } from '@inference-proxy/contracts';
import type { ProcessEnd } from './app-process.ts';
import type { PrintedLines } from './printed-lines.ts';
import type { ReplicaState } from './replica-states.ts';
import type { RunListener, RunningRun, RunRequest } from './runtime.ts';

export interface Replica {
  readonly state: ReplicaState;
  /** Whether the system confines the replica's signals, and its access to other processes, to the replica. */
  readonly contained: boolean;
  /** Whether a run has ended normally here, so that the process is known to work. */
  readonly proved: boolean;
  /** Undefined if the process could not be started, or is not started by the worker. */
  readonly pid: number | undefined;
  readonly freeSlots: number;
  /** Starts a run. The replica must have a free slot. */
  run(request: RunRequest, listener: RunListener): RunningRun;
  /** Takes no further runs. The replica ends after its last run. */
  drain(): void;
  /** Ends the replica, and every process that it started, immediately. */
  kill(): void;
}

export interface ReplicaListener {
  /** The state of the replica has changed. `from` is undefined for the first state, `spawning`. */
  moved(from: ReplicaState | undefined, to: ReplicaState): void;
  /** The app is imported and set up. */
  ready(functions: readonly FunctionSpec[]): void;
  /** The app did not start. `exited` follows. */
  failed(error: ErrorFields): void;
  /** A run has ended. Its slot is free if the replica still takes runs. */
  freed(): void;
  /** The replica takes no further runs, and ends after its open runs. @param why the reason, as text for the log */
  retiring(why: string): void;
  /** Lines of no run, or of a run that has ended. */
  log(lines: PrintedLines, runId: RunId | undefined): void;
  /** The process and its runs have ended. */
  exited(how: ReplicaExit): void;
}

/** Why a worker ended a ready process before its time. */
export type KilledFor = 'channel' | 'unhealthy';

export interface ReplicaExit extends Omit<ProcessEnd, 'killed'> {
  /** Set if the worker ended the process. */
  readonly killed: KilledFor | undefined;
  /** The last lines that the process printed to stderr. */
  readonly stderr: readonly string[];
}
