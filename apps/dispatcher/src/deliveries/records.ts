// Contract 4: the parts of packages/store that the journey of a delivery uses. The delivery's record in the store decides, not BullMQ's job.
import type { DeliveryQueue, DeliveryStore, HostStore } from '@inference-proxy/store';

export type { AttemptRecord, DeliveryTask, NextStep, ParkReason } from '@inference-proxy/store';

/** The delivery's record. Every method rejects while Redis is away. */
export type DeliveryRecords = Pick<DeliveryStore, 'begin' | 'body' | 'record' | 'park'>;

/** Queues the job of the next attempt. */
export type NextJobs = Pick<DeliveryQueue, 'add'>;

/** The slots of attempts at their receivers, over all dispatchers. */
export type HostSlots = Pick<HostStore, 'enter' | 'leave'>;
