export {
  type Delivery,
  type DeliveryFilter,
  DeliveryLog,
  type DeliveryPage,
  type DeliveryState,
  type LoggedAttempt,
  type Redelivered,
} from './deliveries/delivery-log.ts';
export {
  type AttemptRecord,
  type Begun,
  DeliveryStore,
  type DeliveryTask,
  type NextStep,
  type ParkReason,
  type Recorded,
} from './deliveries/delivery-store.ts';
export {
  backlogQueueName,
  DeliveryQueue,
  deliveryQueueName,
  deliveryQueueOptions,
  isOfTheQueue,
} from './deliveries/queue.ts';
export {
  type CircuitSignal,
  type Entered,
  type Entry,
  HostStore,
  type HostStoreOptions,
  type Slot,
} from './hosts/host-store.ts';
export type { Accepted, NewRun } from './runs/accept.ts';
export type { AppDepth, ProjectDepth, StoreDepths } from './runs/depths.ts';
export type { RunExtent } from './runs/extent.ts';
export { type Following, GatewayStore, type GatewayStoreOptions, type Live } from './runs/gateway-store.ts';
export { newRunId } from './runs/ids.ts';
export type { RunPage, RunQuery } from './runs/list.ts';
export { overShare } from './runs/over-share.ts';
export type { RunEvent, RunReader } from './runs/reader.ts';
export type { RunRecord } from './runs/record.ts';
export { pieceBytes } from './runs/results.ts';
export type { LogLine, NewLogLine, RunLog } from './runs/run-log.ts';
export { storeTrouble } from './store-trouble.ts';
export { defaultTimings, type StoreLogger, type StoreTimings } from './timings.ts';
export { Revocations, type Revoked, type TokenIdentity } from './tokens/revocations.ts';
export type { LogPart } from './workers/log-writer.ts';
export type { TakenRun } from './workers/taken-runs.ts';
export {
  type Append,
  type AppendAnswer,
  type End,
  type EndAnswer,
  type Head,
  type RenewAnswer,
  type Want,
  WorkerStore,
  type WorkerStoreOptions,
} from './workers/worker-store.ts';
