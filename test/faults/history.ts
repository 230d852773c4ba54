// The observations of callers, readers and receivers, recorded in order for the checker.

/** The kind of a call, which decides its possible outcomes. */
export type Kind =
  /** One answer or none. */
  | 'call'
  /** A plain stream; a broken stream is not resumed. */
  | 'stream'
  /** A stream that the caller resumes until its end. */
  | 'resumed'
  /** Accepted with 202 and a webhook. */
  | 'promised'
  /** A call with an idempotency key, repeated until it has an answer. */
  | 'retried';

export interface Seen {
  readonly kind: Kind;
  /** A name that the function receives and returns. */
  readonly tag: string;
  /** `performance.now()`. */
  readonly beganAt: number;
  readonly endedAt: number;
  /** `ok`, the contract's code of an error, or `broken`: the connection ended within the answer. */
  readonly is: string;
  /** The error's message. */
  readonly said?: string;
  /** The id of the run, if the answer had one. */
  readonly runId?: string;
  /** Numbers of the items, in the order of arrival. */
  readonly items?: readonly number[];
  /** The executions that the items came from. */
  readonly executions?: readonly string[];
  /** The longest time without a byte, ms. */
  readonly stalledMs?: number;
  /** Ids of the runs that answered under one key. */
  readonly answeredBy?: readonly string[];
}

export interface Delivered {
  readonly runId: string;
  readonly webhookId: string;
  readonly body: string;
  readonly verified: boolean;
}

/** A run as a gateway reports it; `unknown` if the gateway knows no such run. */
export interface ReportedRun {
  readonly runId: string;
  readonly status: string;
  readonly result?: unknown;
}

/** A time in which a fault was present, or Redis stood still by itself, and calls may fail. `performance.now()`. */
export interface Trouble {
  readonly from: number;
  readonly to: number;
  /** Redis lost its last writes: runs of that time may be gone or have run again (docs/operations/failures.md, "What is safe when"). */
  readonly tailLost?: boolean;
}

export interface History {
  readonly seen: readonly Seen[];
  readonly delivered: readonly Delivered[];
  /** Each looked-up run, by gateway. */
  readonly reported: readonly (readonly ReportedRun[])[];
  /** How often the function was entered, by tag. */
  readonly entered: ReadonlyMap<string, number>;
  readonly troubles: readonly Trouble[];
  /** Keys and processes that should be gone when no call is under way. */
  readonly left: readonly string[];
}

/** Returns whether the store may have lost a call. */
export const mayBeForgotten = (seen: Seen | undefined, troubles: readonly Trouble[]): boolean =>
  seen !== undefined && troubles.some((trouble) => trouble.tailLost && overlaps(seen, trouble));

/** Outcomes of a call that was not accepted, or whose acceptance the caller did not learn. */
export const REFUSED: ReadonlySet<string> = new Set(['unavailable', 'overloaded', 'broken']);

/** Returns whether a call was under way during an episode. */
export const overlaps = (seen: Pick<Seen, 'beganAt' | 'endedAt'>, { from, to }: Trouble): boolean =>
  seen.endedAt >= from && seen.beganAt <= to;
