// Contract 8: the interface of everything that executes an app's functions. One conformance suite covers every kind of runtime.
import type { AnswerHead, ErrorFields, FunctionSpec, ItemKind, RunId, StartLine } from '@inference-proxy/contracts';
import type { ReplicaCounts } from '@inference-proxy/store';
import type { PrintedLines } from './printed-lines.ts';

/** One run as the worker passes it to a runtime. */
export interface RunRequest {
  readonly runId: RunId;
  readonly fn: string;
  /** The caller's JSON object as received, never parsed here. For a server, the forwarded request (`encodeRequest`). */
  readonly params: Buffer;
  /** True if the credits of readers pace the run. Otherwise only the store does. */
  readonly paced: boolean;
  /** The trace of the call (W3C `traceparent`), if it has one. */
  readonly traceparent?: string;
}

/** Consecutive items, which follow the items of the previous frame. */
export interface ItemsFrame {
  readonly kind: ItemKind;
  /** The number of items in the blob, at least 1. */
  readonly count: number;
  /** A slice of a chunk that was read from the process. Copy it to keep it for long. */
  readonly blob: Buffer;
}

/** The end of a run. `error` is set unless `state` is `succeeded`. `result` is set only for a run that succeeded and did not stream. */
export interface RunEnd {
  readonly state: 'succeeded' | 'failed' | 'cancelled' | 'timed_out';
  /** The number of items. */
  readonly items: number;
  /** True if the function returned a generator or iterator, even without items. */
  readonly streamed: boolean;
  /** Compact JSON text, UTF-8. For a server, the body of its answer, as received. */
  readonly result?: Buffer;
  /** The head of a server's answer, if the run succeeded. */
  readonly head?: AnswerHead;
  /** The HTTP status that the result sets (Contract 2). */
  readonly statusCode?: number;
  readonly error?: ErrorFields;
  /** Time in the function, milliseconds. */
  readonly runTimeMs: number;
}

/** Receives a run's events: perhaps `head`, then items and lines, then exactly one `ended`, the last event. Must not throw. */
export interface RunListener {
  /** The head of a server's answer that streams. Comes before its items. */
  head(head: AnswerHead): void;
  items(batch: ItemsFrame): void;
  /** Lines, in the order in which they were printed. */
  log(lines: PrintedLines): void;
  ended(end: RunEnd): void;
}

/** `unavailable`: the worker stops, so the run cannot continue. */
export type CancelReason = 'cancelled' | 'timed_out' | 'unavailable';

/** The handle of a run. Calls after the run's end do nothing. */
export interface RunningRun {
  /** Interrupts the run. `ended` follows within the cancel grace. A run that succeeds first stays succeeded, unless its time limit is over. */
  cancel(reason: CancelReason): void;
  /** A reader of a paced run, or the store of any other run, has the items up to this number (absolute, from 1). */
  credit(upTo: number): void;
  /** Pauses and resumes a server's answer while the store is slow. Credits pause a function's process. A cancelled run does not stay paused. */
  pause(): void;
  resume(): void;
}

/**
 * - `starting`: no process has been ready yet
 * - `ready`: serves (all slots may be taken for a moment)
 * - `broken`: does not start; retried with growing delays
 * - `draining`, `closed`: takes no runs
 */
export type RuntimeState = 'starting' | 'ready' | 'broken' | 'draining' | 'closed';

/** One version of one app, in service. */
export interface Runtime {
  readonly state: RuntimeState;
  /** Known after the first process was ready. */
  readonly functions: readonly FunctionSpec[];
  /** Why the app is broken. */
  readonly error: ErrorFields | undefined;
  /** The last lines of the start. Absent: the runtime keeps none. */
  readonly startLog?: readonly StartLine[];
  /** The number of runs that the runtime takes at this moment. */
  readonly freeSlots: number;
  /** The processes of this version on this worker. */
  readonly replicas: ReplicaCounts;
  /** Calls `listener` after `state`, `functions` or `error` has changed. */
  onChange(listener: () => void): void;
  /** Calls `listener` after `replicas` has changed. */
  onReplicas(listener: () => void): void;
  /** Calls `listener` with the lines that the app prints before its first process is ready. */
  onStartLines(listener: (texts: readonly string[]) => void): void;
  /** Starts the processes. `state` changes when the first process is ready, or when none starts. Then the retries continue. */
  start(): void;
  /** Never throws. A run without a free slot waits for a slot within its time limit. */
  run(request: RunRequest, listener: RunListener): RunningRun;
  /** Takes no further runs, waits for open runs, lets the app tear down, and ends the processes. Never rejects. */
  drain(): Promise<void>;
  /** Ends the processes at once. Open runs end as `unavailable`. Never rejects. */
  close(): Promise<void>;
}
