// Contract 6, "Settings": lease, renewal, reap and retry times, in milliseconds. Tests can shorten these settings.

export interface StoreTimings {
  /** Time for which a worker, a gateway or an attempt counts as alive without a renewal. */
  readonly leaseMs: number;
  /** Interval at which a worker renews its leases. */
  readonly renewMs: number;
  /** Interval at which a gateway reports the runs that have readers. */
  readonly attendMs: number;
  /** Interval at which a gateway reaps. */
  readonly reapMs: number;
  /** A longer gap between two reaps counts as a pause of Redis. */
  readonly pauseMs: number;
  /** Time after which a call to the store fails without an answer. */
  readonly commandMs: number;
  /** Time for which runs queue for an app without a worker (`WORKER_GRACE_S`). */
  readonly workerGraceMs: number;
  /** Time for which a due webhook may wait for its job. Then reap hands the webhook over again. */
  readonly handoverMs: number;
  /** Age of a queued run after which a worker is woken again. */
  readonly staleMs: number;
  /** Time for which the cancel of an unknown run is remembered. Its accept was not answered and may still execute. */
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

/** The store's logger. A pino logger fits. */
export interface StoreLogger {
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}
