// Lease, renewal, reap and retry times (contract 6): settings, so that tests can shorten them. All in milliseconds.

export interface StoreTimings {
  /** How long a worker, a gateway and an attempt are believed to be alive without word. */
  readonly leaseMs: number;
  /** How often a worker renews its leases. */
  readonly renewMs: number;
  /** How often a gateway says which runs it reads. */
  readonly attendMs: number;
  /** How often a gateway reaps. */
  readonly reapMs: number;
  /** Longest gap between two reaps that is not taken for a pause of Redis. */
  readonly pauseMs: number;
  /** How long a call to the store may go unanswered before its caller is told. */
  readonly commandMs: number;
  /** How long runs queue for an app that no worker serves (`WORKER_GRACE_S`). */
  readonly workerGraceMs: number;
  /** How long a due webhook may wait for its job before reap hands it out again. */
  readonly handoverMs: number;
  /** Age at which a queued run is woken for again. */
  readonly staleMs: number;
  /** How long the cancel of a run is remembered whose accept was not answered. */
  readonly tombstoneMs: number;
}

export const defaultTimings: StoreTimings = {
  leaseMs: 15_000,
  renewMs: 5_000,
  attendMs: 5_000,
  reapMs: 1_000,
  pauseMs: 5_000,
  commandMs: 2_000,
  workerGraceMs: 30_000,
  handoverMs: 10_000,
  staleMs: 1_000,
  tombstoneMs: 60_000,
};

/** What the store tells of: a pino logger fits. */
export interface StoreLogger {
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}
