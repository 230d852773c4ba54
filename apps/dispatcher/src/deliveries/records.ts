// What a delivery needs of the store, in the shapes of packages/store: its record there decides, BullMQ's does not.
import type { DeliveryJob } from '@inference-proxy/contracts';
import type { AttemptRecord, DeliveryTask as StoredTask } from '@inference-proxy/store';

export type { AttemptRecord } from '@inference-proxy/store';

export type DeliveryTask = StoredTask & {
  /** How many earlier attempts were answered with a 4xx that does not pass, where the store counts them (`NextStep.refusals`). */
  readonly refusals?: number;
};

/** What follows from an attempt. `at` is Unix ms. */
export type NextStep =
  | { readonly state: 'delivered' | 'failed' }
  | { readonly state: 'pending'; readonly at: number; readonly refusals: number };

/** The delivery's record. Every method rejects while Redis is away. */
export interface DeliveryRecords {
  /** Begins an attempt under a lease: one at a time. A begun attempt that is not recorded is handed out again when its lease has run out. */
  begin(
    job: DeliveryJob,
    leaseMs: number,
  ): Promise<
    { readonly state: 'begun'; readonly task: DeliveryTask } | { readonly state: 'settled' | 'busy' | 'gone' }
  >;
  /** The envelope's bytes, the same on every attempt. */
  body(task: DeliveryTask): Promise<Buffer>;
  record(task: DeliveryTask, attempt: AttemptRecord, next: NextStep): Promise<'recorded' | 'superseded'>;
}

/** Where the next attempt's job goes. */
export interface NextJobs {
  add(job: DeliveryJob, delayMs: number): Promise<void>;
}
