export {
  type AttemptRecord,
  type Begun,
  DeliveryStore,
  type DeliveryTask,
  type NextStep,
} from './deliveries/delivery-store.ts';
export { DeliveryQueue, deliveryQueueName, deliveryQueueOptions } from './deliveries/queue.ts';
export type { Accepted, NewRun } from './runs/accept.ts';
export type { RunExtent } from './runs/extent.ts';
export { GatewayStore, type GatewayStoreOptions, type Live } from './runs/gateway-store.ts';
export { newRunId } from './runs/ids.ts';
export type { RunEvent, RunReader } from './runs/reader.ts';
export type { RunRecord } from './runs/record.ts';
export { defaultTimings, type StoreLogger, type StoreTimings } from './timings.ts';
export {
  type Append,
  type AppendAnswer,
  type End,
  type EndAnswer,
  type RenewAnswer,
  type TakenRun,
  WorkerStore,
  type WorkerStoreOptions,
} from './workers/worker-store.ts';
