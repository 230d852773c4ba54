// What the journey needs of packages/store: the delivery's record there decides, BullMQ's does not.
import type { DeliveryQueue, DeliveryStore, HostStore } from '@inference-proxy/store';

export type { AttemptRecord, DeliveryTask, NextStep, ParkReason } from '@inference-proxy/store';

/** The delivery's record. Every method rejects while Redis is away. */
export type DeliveryRecords = Pick<DeliveryStore, 'begin' | 'body' | 'record' | 'park'>;

/** Where the next attempt's job goes. */
export type NextJobs = Pick<DeliveryQueue, 'add'>;

/** Attempts' slots at their receivers, over all dispatchers. */
export type HostSlots = Pick<HostStore, 'enter' | 'leave'>;
