// Contract 5 and the harness protocol: a run, its items and its outcome, as services hand them to each other.
import type { ErrorFields } from './errors.ts';
import type { AnswerHead } from './http-exchange.ts';

/** A UUIDv7 (RFC 9562), lower case. */
export type RunId = string;

/** How a run can have ended. */
export type EndState = 'succeeded' | 'failed' | 'cancelled' | 'timed_out' | 'expired';

/** A run's state as the look-up shows it. */
export type RunState = 'queued' | 'running' | EndState;

/**
 * How a blob of items is to be read.
 *
 * - `s`: strings without newlines, joined by `\n`
 * - `j`: compact JSON texts (which never hold a newline), joined by `\n`
 * - `m`: one string that holds newlines (count is 1)
 */
export type ItemKind = 's' | 'j' | 'm';

/** Consecutive items of a run, as one blob of UTF-8 that no service on the way parses. */
export interface ItemBatch {
  /** Number of the first item, from 1. */
  readonly first: number;
  /** How many items the blob holds, at least 1. */
  readonly count: number;
  readonly kind: ItemKind;
  readonly blob: Buffer;
}

/** How a run ended. `result` is absent where the answer is the list of the run's items. */
export interface Outcome {
  readonly state: EndState;
  /** How many items the run has. */
  readonly items: number;
  /** True where the function returned a generator or iterator: the result is the list of items, maybe empty. */
  readonly streamed: boolean;
  /** For a run that succeeded and was not streamed: the return value as compact JSON text (UTF-8), or, where there is a head, the body's bytes. */
  readonly result?: Buffer;
  /** Set unless `state` is `succeeded`. */
  readonly error?: ErrorFields;
  /** HTTP status the function asked for by an integer `status_code` in its result (contract 2). */
  readonly statusCode?: number;
  /** Of a custom runtime's answer, where the run succeeded. */
  readonly head?: AnswerHead;
  /** Time in the function in milliseconds, as the decimal text that goes into the envelope. */
  readonly runTimeMs: string;
  /** When the run ended: Unix milliseconds of the store's clock. */
  readonly endedAt: number;
}
