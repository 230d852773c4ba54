// Contract 5 and the harness protocol: a run, its items and its outcome, as services exchange them.
import type { ErrorFields } from './errors.ts';
import type { AnswerHead } from './http-exchange.ts';

/** A UUIDv7 (RFC 9562), lower case. */
export type RunId = string;

/** The states of an ended run. */
export type EndState = 'succeeded' | 'failed' | 'cancelled' | 'timed_out' | 'expired';

/** The states of a run in its look-up. */
export type RunState = 'queued' | 'running' | EndState;

/**
 * The encoding of a blob of items.
 *
 * - `s`: strings without newlines, joined by `\n`
 * - `j`: compact JSON texts (which never contain a newline), joined by `\n`
 * - `m`: one string that contains newlines (count is 1)
 * - `b`: bytes, a piece of a body (count is 1). Events and lists show them in base64
 */
export type ItemKind = 's' | 'j' | 'm' | 'b';

/** Consecutive items of a run, as one blob of UTF-8. No service parses the blob. */
export interface ItemBatch {
  /** Number of the first item, from 1. */
  readonly first: number;
  /** The number of items in the blob, at least 1. */
  readonly count: number;
  readonly kind: ItemKind;
  readonly blob: Buffer;
}

/** The outcome of a run. `result` is absent if the answer is the list of the run's items. */
export interface Outcome {
  readonly state: EndState;
  /** The number of the run's items. */
  readonly items: number;
  /** True if the function returned a generator or iterator: the result is the list of items, which may be empty. */
  readonly streamed: boolean;
  /** Set for a run that succeeded and was not streamed: the return value as compact JSON text (UTF-8), or the body's bytes if there is a head. */
  readonly result?: Buffer;
  /** Length of a result that stays in the store until its answer is written. Set in place of a large `result`. */
  readonly resultBytes?: number;
  /** Set unless `state` is `succeeded`. */
  readonly error?: ErrorFields;
  /** The HTTP status from an integer `status_code` in the function's result (contract 2). */
  readonly statusCode?: number;
  /** The head of a custom runtime's answer, if the run succeeded. */
  readonly head?: AnswerHead;
  /** Time in the function in milliseconds, as the decimal text for the envelope. */
  readonly runTimeMs: string;
  /** The time of the run's end: Unix milliseconds of the store's clock. */
  readonly endedAt: number;
}
