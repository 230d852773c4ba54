// Contract 1, 3 and 5: the gateway's interface to the run store.
import { randomUUID } from 'node:crypto';
import { type AppDescription, type ItemBatch, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { DeliveryLog } from '../deliveries/delivery-log.ts';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { INDEX_MS, names, projectPrefix, projectsKey } from '../keys.ts';
import { Lane } from '../lane.ts';
import { Rounds } from '../maintenance/rounds.ts';
import { type Shares, shareText } from '../maintenance/shares.ts';
import { storeNotReadyReason } from '../ready.ts';
import { runScript, withinLimit } from '../redis-calls.ts';
import { Registry } from '../registry/registry.ts';
import { storeError } from '../store-error.ts';
import { defaultTimings, type StoreLogger, type StoreTimings } from '../timings.ts';
import { Revocations } from '../tokens/revocations.ts';
import { VersionStore } from '../versions/version-store.ts';
import { type Accepted, Acceptor, type NewRun } from './accept.ts';
import { type CancelledFrom, cancelScript } from './cancel.ts';
import { type KeyClaim, readClaim } from './claim.ts';
import type { FollowerMode } from './codec.ts';
import { readDepths, type StoreDepths } from './depths.ts';
import { detachScript } from './detach.ts';
import { Feeds } from './feeds.ts';
import { Follower } from './follower.ts';
import { itemBatches, readItems } from './items.ts';
import { listRuns, type RunPage, type RunQuery } from './list.ts';
import type { RunReader } from './reader.ts';
import { type RunProgress, type RunRecord, readProgress, readRecord } from './record.ts';
import { readResult } from './result.ts';
import { type RunLog, readLog } from './run-log.ts';

/**
 * The events that a reader follows beside the outcome. `FollowerMode` has the codes that the store keeps:
 *
 * - `outcome`  no other events
 * - `items`    items
 * - `answer`   the answer of a custom runtime: its head, then items
 * - `logs`     log lines
 * - `rich`     the events of a rich stream: items, log lines and the start
 */
export type Following = 'outcome' | 'items' | 'answer' | 'logs' | 'rich';

/** Bytes of large results that are read at a time. A call that is accepted in between waits behind at most this many bytes. */
const RESULT_LANE_BYTES = 1024 * 1024;

const MODES: Readonly<Record<Following, FollowerMode>> = {
  outcome: 'o',
  items: 'i',
  answer: 'i',
  logs: 'l',
  rich: 'f',
};

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
  /** A project's deliveries and their redelivery (Contract 5). */
  readonly deliveryLog: DeliveryLog;
  /** Tokens that are refused before they expire (Contract 6). */
  readonly revocations: Revocations;
  /** The versions of deployed apps (Contract 7). */
  readonly versions: VersionStore;
  readonly #timings: StoreTimings;
  readonly #feeds: Feeds;
  readonly #registry: Registry;
  readonly #shares: Shares;
  readonly #rounds: Rounds;
  readonly #acceptor: Acceptor;
  readonly #resultLane: Lane;
  readonly #indexed = new Map<string, number>();

  readonly #options: GatewayStoreOptions;

  constructor(options: GatewayStoreOptions) {
    this.#options = options;

    const { commands, gatewayId, deliveries, logger } = options;
    this.#timings = { ...defaultTimings, ...options.timings };
    this.#resultLane = new Lane(this.#timings.commandMs, undefined, RESULT_LANE_BYTES);
    const shared = {
      ...options,
      timings: this.#timings,
      hasRoom: (project: string) => this.#shares.acceptLimit(project) === undefined,
    };
    this.#feeds = new Feeds(shared, (feeds) => new Follower(shared, feeds));
    this.#registry = new Registry(shared);
    this.deliveryLog = new DeliveryLog(commands, deliveries, this.#timings);
    this.revocations = new Revocations(commands, logger, this.#timings);
    this.versions = new VersionStore(commands, options.subscriber, this.#timings);
    this.#shares = options.shares;
    this.#rounds = new Rounds([this.#feeds, this.#registry, this.revocations]);
    this.#acceptor = new Acceptor(
      commands,
      gatewayId,
      this.#timings,
      (project) => this.#prepare(project),
      (project) => this.#shares.acceptLimit(project),
    );
  }

  /** Reports readers to the store, and reads apps and revocations again, at intervals. */
  start(): void {
    this.#rounds.start();
  }

  stop(): void {
    this.#rounds.stop();
    this.#feeds.close();
    this.#registry.close();
    this.versions.close();
  }

  /** Returns the reason why calls cannot be served now, or undefined if they can. */
  notReadyReason(): Promise<string | undefined> {
    return storeNotReadyReason(this.#options.commands, this.#timings.commandMs, ['accept', 'follow']);
  }

  /**
   * Accepts a run and follows it from its first item, unless `following` is `none`. The reader exists before the answer. It is closed here if the
   * run was not accepted.
   *
   * `accepted` rejects with `unavailable` if the store did not answer. The accept may still execute, so an unpromised run is cancelled
   * as soon as the store is back.
   */
  accept(run: NewRun, following: Following | 'none'): { accepted: Promise<Accepted>; reader?: RunReader } {
    const mode = following === 'none' ? undefined : MODES[following];
    const reader = mode && this.#feeds.openNew(run.project, run.runId, mode, following === 'answer');
    const accepted = this.#acceptor.accept(run, mode ?? '-').then(
      (answer) => {
        if (answer.state !== 'accepted') this.#refuse(run, reader);
        else if (reader) this.#feeds.confirm(run.project, run.runId);
        return answer;
      },
      (error: unknown) => {
        if (error instanceof ServiceError && error.code === 'overloaded') this.#refuse(run, reader);
        else reader?.close();
        if (!(error instanceof ServiceError)) throw error;
        // A script that failed halfway may have accepted the run.
        const mayExist = error.code === 'unavailable' || error.code === 'internal';
        if (mayExist && !run.promised) void this.#cancelLate(run);
        throw new ServiceError(error.code, error.message, {
          cause: error.cause,
          ...(mayExist && { runId: run.runId }),
        });
      },
    );
    return reader ? { accepted, reader } : { accepted };
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
  async cancel(project: string, runId: RunId): Promise<CancelledFrom> {
    return withinLimit(this.#callCancel(project, runId, 0), this.#timings.commandMs);
  }

  /**
   * Cancels a run whose accept was not answered. If the accept has not executed yet, the run is refused when it does.
   *
   * Has no time limit: the connection holds the command until Redis is back.
   *
   * @throws ServiceError `unavailable` if the connection was closed before the answer
   */
  async withdraw(project: string, runId: RunId): Promise<void> {
    await this.#callCancel(project, runId, this.#timings.tombstoneMs).catch((cause: unknown) => {
      throw storeError(cause);
    });
  }

  /** Lets a run with `onDisconnect=cancel` continue without a reader, because its caller got a 202 answer. @throws ServiceError `unavailable` */
  async detach(project: string, runId: RunId): Promise<void> {
    await withinLimit(runScript(this.#options.commands, detachScript, project, [runId]), this.#timings.commandMs);
  }

  /** Returns the project's apps by name. @throws ServiceError `unavailable` */
  apps(project: string): Promise<ReadonlyMap<string, AppDescription>> {
    return this.#registry.apps(project);
  }

  /** Closes the reader of a refused call. The store has no run, so no departure is sent. */
  #refuse({ project, runId }: NewRun, reader: RunReader | undefined): void {
    if (!reader) return;
    this.#feeds.refused(project, runId);
    reader.close();
  }

  async #callCancel(project: string, runId: RunId, tombstoneMs: number): Promise<CancelledFrom> {
    const args = { handoverMs: this.#timings.handoverMs, tombstoneMs, runId, requestId: randomUUID() };
    const { from, webhookDue } = await runScript(this.#options.commands, cancelScript, project, args);
    if (webhookDue) this.#options.deliveries.handOver(project, [runId]);
    return from;
  }

  async #cancelLate(run: NewRun): Promise<void> {
    try {
      await this.withdraw(run.project, run.runId);
    } catch (error) {
      this.#options.logger.warn(
        { err: error, runId: run.runId },
        'a run whose accept was not answered was not cancelled',
      );
    }
  }

  /** Prepares a project's first accept: the gateway's channel is confirmed, and the project is in the index that reap visits. */
  async #prepare(project: string): Promise<void> {
    await this.#feeds.listen(project);
    const now = performance.now();
    for (const [other, at] of this.#indexed) {
      if (now - at < INDEX_MS) break;
      this.#indexed.delete(other);
    }
    if (this.#indexed.has(project)) return;
    const share = this.#shares.shareOf(project);
    await Promise.all([
      this.#options.commands.zadd(projectsKey, Date.now(), project),
      // A new project is held to its share before the next sweep writes it.
      share !== undefined &&
        this.#options.commands.set(projectPrefix(project) + names.share, shareText(share, false), 'NX'),
    ]);
    this.#indexed.set(project, now);
  }
}
