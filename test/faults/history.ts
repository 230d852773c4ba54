// What callers, readers and receivers saw, written down as it happened, for the checker.

/** How a caller came to its answer, and what it may expect of it. */
export type Kind =
  /** One answer, or nothing. */
  | 'call'
  /** A plain stream: what breaks is not taken up again. */
  | 'stream'
  /** A stream that is taken up again until it is complete. */
  | 'resumed'
  /** Accepted with 202 and a webhook. */
  | 'promised'
  /** Sent under a key until it is answered. */
  | 'retried';

export interface Seen {
  readonly kind: Kind;
  /** Told to the function, and in what it gives back. */
  readonly tag: string;
  /** `performance.now()`. */
  readonly beganAt: number;
  readonly endedAt: number;
  /** `ok`, the contract's code of an error, or `broken`: the connection ended within the answer. */
  readonly is: string;
  /** The error's message. */
  readonly said?: string;
  /** Where there was one. */
  readonly runId?: string;
  /** Numbers of the items, as they came. */
  readonly items?: readonly number[];
  /** Executions that the items are of. */
  readonly executions?: readonly string[];
  /** The longest that nothing came, ms. */
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

/** A run as a gateway tells of it; `unknown` where it knows none. */
export interface Told {
  readonly runId: string;
  readonly status: string;
  readonly result?: unknown;
}

/** A stretch of time in which something was wrong, and calls may fail. `performance.now()`. */
export interface Trouble {
  readonly from: number;
  readonly to: number;
  /** The last writes of Redis were lost: what was under way then may be gone, or have run again (docs/operations.md, "What is safe when"). */
  readonly tailLost?: boolean;
}

export interface History {
  readonly seen: readonly Seen[];
  readonly delivered: readonly Delivered[];
  /** Each run that was looked up, by each gateway. */
  readonly told: readonly (readonly Told[])[];
  /** How often the function was entered, by tag. */
  readonly entered: ReadonlyMap<string, number>;
  readonly troubles: readonly Trouble[];
  /** What should be gone when nothing is under way, in the store and on the machine. */
  readonly left: readonly string[];
}

/** Whether the store may have forgotten what it knew of a call. */
export const mayBeForgotten = (seen: Seen | undefined, troubles: readonly Trouble[]): boolean =>
  seen !== undefined && troubles.some((trouble) => trouble.tailLost && overlaps(seen, trouble));

/** What a call ends with where nothing was accepted, or nobody was told that it was. */
export const REFUSED: ReadonlySet<string> = new Set(['unavailable', 'overloaded', 'broken']);

/** Whether a call was under way in a stretch of time. */
export const overlaps = (seen: Pick<Seen, 'beganAt' | 'endedAt'>, { from, to }: Trouble): boolean =>
  seen.endedAt >= from && seen.beganAt <= to;
