export type { Begun, DeliveryTask } from './deliveries/delivery-begin.ts';
export {
  type Delivery,
  type DeliveryFilter,
  DeliveryLog,
  type DeliveryPage,
  type DeliveryState,
  type LoggedAttempt,
  type Redelivered,
} from './deliveries/delivery-log.ts';
export type { NextStep, ParkReason } from './deliveries/delivery-record.ts';
export { type AttemptRecord, DeliveryStore, type Recorded } from './deliveries/delivery-store.ts';
export {
  backlogQueueName,
  DeliveryQueue,
  deliveryQueueName,
  deliveryQueueOptions,
  isOfTheQueue,
} from './deliveries/queue.ts';
export {
  type CircuitSignal,
  HostStore,
  type HostStoreOptions,
  type Slot,
  type SlotAnswer,
  type SlotRequest,
} from './hosts/host-store.ts';
export { type Circuit, type Receiver, Receivers } from './hosts/receivers.ts';
export { Maintenance, type MaintenanceOptions } from './maintenance/maintenance.ts';
export { Rounds, type Task } from './maintenance/rounds.ts';
export { Shares } from './maintenance/shares.ts';
export { storeNotReadyReason } from './ready.ts';
export type { ReplicaCounts } from './registry/app-counts.ts';
export { type Accepted, type NewRun, newRunId } from './runs/accept.ts';
export { type Following, overShare } from './runs/codec.ts';
export type { AppDepth, ProjectDepth, StoreDepths } from './runs/depths.ts';
export { GatewayStore, type GatewayStoreOptions } from './runs/gateway-store.ts';
export type { RunPage, RunQuery, WebhookFilter } from './runs/list.ts';
export type { RunEvent, RunReader } from './runs/reader.ts';
export type { RunProgress, RunRecord } from './runs/record.ts';
export { pieceBytes } from './runs/result.ts';
export type { LogLine, NewLogLine, RunLog } from './runs/run-log.ts';
export { Latencies } from './stats/latencies.ts';
export type { AppStats, Stats, StatsQuery } from './stats/stats.ts';
export { defaultTimings, type StoreLogger, type StoreTimings } from './timings.ts';
export { Revocations, type Revoked, type TokenIdentity } from './tokens/revocations.ts';
export type { AuditEntry } from './versions/audit-entry.ts';
export { type BundleName, DeploymentFeed } from './versions/deployment-feed.ts';
export { SecretFeed } from './versions/secret-feed.ts';
export { type SecretRequest, SecretStore, type StoredSecret } from './versions/secret-store.ts';
export { UsedBundles } from './versions/used-bundles.ts';
export type { Deployed, NewVersion, RollOutMode } from './versions/version-deploy.ts';
export type { ActivationRecord, Deployment, VersionRecord, VersionState } from './versions/version-record.ts';
export type { BuildLine, CallCounts, RollOutSteps, VersionReport } from './versions/version-report.ts';
export { VersionStore } from './versions/version-store.ts';
export type { Append, AppendAnswer } from './workers/append.ts';
export type { End, EndAnswer } from './workers/end.ts';
export type { Head } from './workers/head.ts';
export type { LogPart } from './workers/log.ts';
export type { RenewAnswer } from './workers/renew.ts';
export { queueIn, queueOf, type TakenRun, type TakeRequest } from './workers/take.ts';
export { WorkerStore, type WorkerStoreOptions } from './workers/worker-store.ts';
