// Contract 1, 3 and 5: the gateway's interface to the run store.
import type { ItemBatch, RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { DeliveryLog } from '../deliveries/delivery-log.ts';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { Receivers } from '../hosts/receivers.ts';
import { names, projectPrefix } from '../keys.ts';
import { Lane } from '../lane.ts';
import { Rounds } from '../maintenance/rounds.ts';
import type { Shares } from '../maintenance/shares.ts';
import { storeNotReadyReason } from '../ready.ts';
import { withinLimit } from '../redis.ts';
import { type AppCounts, appCountsScript } from '../registry/app-counts.ts';
import { Registry } from '../registry/registry.ts';
import { runScript } from '../scripts.ts';
import { readStats, type Stats, type StatsQuery } from '../stats/stats.ts';
import { defaultTimings, type StoreLogger, type StoreTimings } from '../timings.ts';
import { Revocations } from '../tokens/revocations.ts';
import { SecretStore } from '../versions/secret-store.ts';
import { VersionStore } from '../versions/version-store.ts';
import { Acceptor } from './accept.ts';
import { type CancelledFrom, Canceller } from './cancel.ts';
import { type KeyClaim, readClaim } from './claim.ts';
import { type Following, MODES } from './codec.ts';
import { readDepths, type StoreDepths } from './depths.ts';
import { detachScript } from './detach.ts';
import { Feeds } from './feeds.ts';
import { Follower } from './follower.ts';
import { itemBatches, readItems } from './items.ts';
import { listRuns, type RunPage, type RunQuery } from './list.ts';
import { type Parameters, readParameters } from './parameters.ts';
import type { RunReader } from './reader.ts';
import { type RunProgress, type RunRecord, readProgress, readRecord } from './record.ts';
import { readResult } from './result.ts';
import { type RunLog, readLog } from './run-log.ts';

/** Bytes of large results that are read at a time. A call that is accepted in between waits behind at most this many bytes. */
const RESULT_LANE_BYTES = 1024 * 1024;

export interface GatewayStoreOptions {
  readonly commands: Redis;
  /** A separate connection, because it only subscribes. */
  readonly subscriber: Redis;
  /** Unique among running gateways; letters and digits. */
  readonly gatewayId: string;
  readonly deliveries: DeliveryQueue;
  readonly logger: StoreLogger;
  readonly timings?: Partial<StoreTimings>;
  /** The shares that calls are held to. `Maintenance` measures them. */
  readonly shares: Shares;
}

export class GatewayStore {
  /** Accepts calls as runs (Contract 1). */
  readonly acceptor: Acceptor;
  /** The apps that workers have announced (Contract 7). */
  readonly registry: Registry;
  /** A project's deliveries and their redelivery (Contract 5). */
  readonly deliveryLog: DeliveryLog;
  /** A project's receivers, their circuits and their parked deliveries (Contract 5). */
  readonly receivers: Receivers;
  /** Tokens that are refused before they expire (Contract 6). */
  readonly revocations: Revocations;
  /** The versions of deployed apps (Contract 7). */
  readonly versions: VersionStore;
  /** The secrets of apps (Contract 7). */
  readonly secrets: SecretStore;
  readonly #timings: StoreTimings;
  readonly #feeds: Feeds;
  readonly #canceller: Canceller;
  readonly #shares: Shares;
  readonly #rounds: Rounds;
  readonly #resultLane: Lane;

  readonly #options: GatewayStoreOptions;

  constructor(options: GatewayStoreOptions) {
    this.#options = options;

    const { commands, deliveries, logger, shares } = options;
    this.#timings = { ...defaultTimings, ...options.timings };
    this.#resultLane = new Lane(this.#timings.commandMs, undefined, RESULT_LANE_BYTES);
    const shared = { ...options, timings: this.#timings };
    this.#feeds = new Feeds(shared, (feeds) => new Follower(shared, feeds));
    this.#canceller = new Canceller(commands, deliveries, this.#timings);
    this.acceptor = new Acceptor(shared, this.#feeds, this.#canceller);
    this.registry = new Registry(shared);
    this.deliveryLog = new DeliveryLog(commands, deliveries, this.#timings);
    this.receivers = new Receivers(commands, this.#timings.commandMs);
    this.revocations = new Revocations(commands, logger, this.#timings);
    this.versions = new VersionStore(commands, options.subscriber, this.#timings);
    this.secrets = new SecretStore(commands, this.#timings);
    this.#shares = shares;
    this.#rounds = new Rounds([this.#feeds, this.registry, this.revocations]);
  }

  /** Reports readers to the store, and reads apps and revocations again, at intervals. */
  start(): void {
    this.#rounds.start();
  }

  stop(): void {
    this.#rounds.stop();
    this.#feeds.close();
    this.registry.close();
    this.versions.close();
  }

  /** Returns the reason why calls cannot be served now, or undefined if they can. */
  notReadyReason(): Promise<string | undefined> {
    return storeNotReadyReason(this.#options.commands, this.#timings.commandMs, ['accept', 'follow']);
  }

  /**
   * Opens a reader of an existing run, after item `cursor` (0: from the start), or of its logs, after line `cursor`. The reader fails if the
   * run or the items after `cursor` are gone.
   */
  read(project: string, runId: RunId, following: Following, cursor: number): RunReader {
    return this.#feeds.open(project, runId, MODES[following], cursor, following === 'answer');
  }

  /** @throws ServiceError `unavailable` */
  lookUp(project: string, runId: RunId): Promise<RunRecord | undefined> {
    return withinLimit(readRecord(this.#options.commands, project, runId), this.#timings.commandMs);
  }

  /** Returns how far a run has come, without its items and result. @throws ServiceError `unavailable` */
  progress(project: string, runId: RunId): Promise<RunProgress | undefined> {
    return withinLimit(readProgress(this.#options.commands, project, runId), this.#timings.commandMs);
  }

  /** Returns the run that has claimed an idempotency key (the hash of `NewRun`). @throws ServiceError `unavailable` */
  claim(project: string, key: string): Promise<KeyClaim | undefined> {
    return withinLimit(readClaim(this.#options.commands, project, key), this.#timings.commandMs);
  }

  /** Returns all items of a run. @throws ServiceError `unavailable` */
  items(project: string, runId: RunId): Promise<ItemBatch[]> {
    return readItems(this.#options.commands, project, runId, this.#timings.commandMs);
  }

  /** Yields all items of a run. A few entries are read at a time, as the caller takes them. @throws ServiceError `unavailable` */
  itemPages(project: string, runId: RunId): AsyncGenerator<ItemBatch> {
    return itemBatches(this.#options.commands, project, runId, this.#timings.commandMs);
  }

  /** Returns the approximate bytes of a run's items. @throws ServiceError `unavailable` */
  async itemBytes(project: string, runId: RunId): Promise<number> {
    const key = projectPrefix(project) + names.run + runId;
    return Number((await withinLimit(this.#options.commands.hget(key, 'size'), this.#timings.commandMs)) ?? 0);
  }

  /** Yields a result that is not in its outcome, in pieces, as the caller takes them. @throws ServiceError `unavailable`, `not_found` */
  result(project: string, runId: RunId, bytes: number): AsyncGenerator<Buffer> {
    return readResult(this.#options.commands, this.#resultLane, project, runId, bytes);
  }

  /** Returns runs, newest first. @throws ServiceError `invalid_request` for a malformed cursor, `unavailable` */
  list(project: string, query: RunQuery): Promise<RunPage> {
    return listRuns(this.#options.commands, project, query, this.#timings.commandMs);
  }

  /** Returns the numbers of open runs and of replicas of each app. @throws ServiceError `unavailable` */
  appCounts(project: string, apps: readonly string[]): Promise<AppCounts[]> {
    return withinLimit(runScript(this.#options.commands, appCountsScript, project, apps), this.#timings.commandMs);
  }

  /** Returns the parameters of a run that has not ended, or undefined for an unknown run. @throws ServiceError `unavailable` */
  parameters(project: string, runId: RunId): Promise<Parameters | undefined> {
    return withinLimit(readParameters(this.#options.commands, project, runId), this.#timings.commandMs);
  }

  /** Returns the counters of ended runs by app. @throws ServiceError `unavailable` */
  stats(project: string, query: StatsQuery): Promise<Stats> {
    return readStats(this.#options.commands, project, query, this.#timings.commandMs);
  }

  /** Returns the lines that a run has printed, after line `after`, or undefined for an unknown run. @throws ServiceError `unavailable` */
  logs(project: string, runId: RunId, after = 0): Promise<RunLog | undefined> {
    return readLog(this.#options.commands, project, runId, after, this.#timings.commandMs);
  }

  /** Returns the queued runs, the running runs and the bytes of one project or of all projects. @throws ServiceError `unavailable` */
  async depths(project?: string): Promise<StoreDepths> {
    const projects = await withinLimit(readDepths(this.#options.commands, project), this.#timings.commandMs);
    return { projects, store: this.#shares.usage };
  }

  /** Cancels a run and returns its state before. @throws ServiceError `unavailable` */
  cancel(project: string, runId: RunId): Promise<CancelledFrom> {
    return this.#canceller.cancel(project, runId);
  }

  /** Cancels a run whose accept was not answered (`Canceller.withdraw`). @throws ServiceError `unavailable` */
  withdraw(project: string, runId: RunId): Promise<void> {
    return this.#canceller.withdraw(project, runId);
  }

  /** Lets a run with `onDisconnect=cancel` continue without a reader, because its caller got a 202 answer. @throws ServiceError `unavailable` */
  async detach(project: string, runId: RunId): Promise<void> {
    await withinLimit(runScript(this.#options.commands, detachScript, project, [runId]), this.#timings.commandMs);
  }
}
