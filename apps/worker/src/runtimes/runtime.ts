// runtimes: what executes an app's functions, whatever they are written in. One conformance suite holds for every kind.
import type { AnswerHead, ErrorFields, FunctionSpec, ItemKind, RunId } from '@inference-proxy/contracts';
import type { PrintedLines } from './printed-lines.ts';

/** One run as it is handed to a runtime. */
export interface RunRequest {
  readonly runId: RunId;
  readonly fn: string;
  /** The caller's JSON object, its bytes as received, which are never parsed here; for a server the request that is forwarded (`encodeRequest`). */
  readonly params: Buffer;
  /** True where a reader's credits hold the generator back; else only the pipe does. */
  readonly paced: boolean;
  /** The trace that the function goes on with (W3C `traceparent`), where there is one. */
  readonly traceparent?: string;
}

/** Consecutive items, in order, following those of the batch before. */
export interface ItemsFrame {
  readonly kind: ItemKind;
  /** How many items the blob holds, at least 1. */
  readonly count: number;
  /** A slice of what was read from the process: copy it to keep it for long. */
  readonly blob: Buffer;
}

/** One line that a function, or what it started, printed. */
export interface LogLine {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
  /** When it was printed, Unix milliseconds. */
  readonly at: number;
}

/** How a run ended. `error` is set unless `state` is `succeeded`; `result` only where it succeeded and was not streamed. */
export interface RunEnd {
  readonly state: 'succeeded' | 'failed' | 'cancelled' | 'timed_out';
  /** How many items there were. */
  readonly items: number;
  /** True where the function gave back a generator or iterator, which may have had no items. */
  readonly streamed: boolean;
  /** Compact JSON text, UTF-8; of a server its answer's body, as it came. */
  readonly result?: Buffer;
  /** Of a server's answer, where the run succeeded. */
  readonly head?: AnswerHead;
  /** HTTP status that the result asks for (contract 2). */
  readonly statusCode?: number;
  readonly error?: ErrorFields;
  /** Time in the function, milliseconds. */
  readonly runTimeMs: number;
}

/** Told of a run's events: `started`, maybe `head`, then items and lines, then `ended` exactly once and nothing after it. Must not throw. */
export interface RunListener {
  /** The function gave something back: a stream whose items follow, or (just before `ended`) a plain result. Not called for a run that never came so far. */
  started(streamed: boolean): void;
  /** A server's answer streams; this comes before its items. */
  head(head: AnswerHead): void;
  items(batch: ItemsFrame): void;
  /** In the order in which they were printed. */
  log(lines: PrintedLines): void;
  ended(end: RunEnd): void;
}

/** `unavailable`: the worker stops, and cannot let the run go on. */
export type CancelReason = 'cancelled' | 'timed_out' | 'unavailable';

/** The handle of a run that has not ended; calls after its end do nothing. */
export interface RunningRun {
  /** Interrupts the run; `ended` follows within the cancel grace. A run that succeeds first stays succeeded, unless its time was up. */
  cancel(reason: CancelReason): void;
  /** A reader of a paced run, or the store of any other run, has the items up to this number (absolute, from 1). */
  credit(upTo: number): void;
  /** Stops and resumes a server's answer while the store is behind. A function's process stops by its credits. Not kept up for a cancelled run. */
  pause(): void;
  resume(): void;
}

/**
 * - `starting`: no process has been ready yet
 * - `ready`: serves (there may be no free slot for a moment)
 * - `broken`: does not start; tried again with growing delays
 * - `draining`, `closed`: takes no runs
 */
export type RuntimeState = 'starting' | 'ready' | 'broken' | 'draining' | 'closed';

/** One version of one app, being served. */
export interface Runtime {
  readonly state: RuntimeState;
  /** Known once it has been ready. */
  readonly functions: readonly FunctionSpec[];
  /** Why it is broken. */
  readonly error: ErrorFields | undefined;
  /** How many runs it takes at this moment. */
  readonly freeSlots: number;
  /** Calls `listener` after `state`, `functions` or `error` has changed. */
  onChange(listener: () => void): void;
  /** Calls `listener` when a run has ended, or a process has become ready: there may be more free slots. */
  onFreeSlot(listener: () => void): void;
  /** Starts the processes. `state` tells when the first is ready, or that none starts; then it goes on trying. */
  start(): void;
  /** Never throws; a run given without a free slot waits for one, within its time limit. */
  run(request: RunRequest, listener: RunListener): RunningRun;
  /** Takes no more runs, lets those under way end, lets the app tear down, and ends the processes. Never rejects. */
  drain(): Promise<void>;
  /** Ends the processes at once; runs under way end as `unavailable`. Never rejects. */
  close(): Promise<void>;
}
