// The run store as a gateway uses it.
import { randomUUID } from 'node:crypto';
import { type AppDescription, type ItemBatch, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { INDEX_MS, projectsKey } from '../keys.ts';
import { Registry } from '../registry/registry.ts';
import { runScript } from '../scripts.ts';
import { withinLimit } from '../time-limit.ts';
import { defaultTimings, type StoreLogger, type StoreTimings } from '../timings.ts';
import { type Accepted, Acceptor, type NewRun } from './accept.ts';
import { type RunExtent, readExtent } from './extent.ts';
import { Feeds } from './feeds.ts';
import { readItems } from './items.ts';
import type { RunReader } from './reader.ts';
import { Reaper } from './reaper.ts';
import { keepGoing, type RunRecord, readRecord } from './record.ts';

/** What a caller of `accept` follows: items and the outcome, the outcome alone, or nothing. */
export type Live = 'items' | 'outcome' | 'none';

export interface GatewayStoreOptions {
  readonly commands: Redis;
  /** A connection of its own: it only subscribes. */
  readonly subscriber: Redis;
  /** Unique among running gateways; letters and digits. */
  readonly gatewayId: string;
  readonly deliveries: DeliveryQueue;
  readonly logger: StoreLogger;
  readonly timings?: Partial<StoreTimings>;
}

export class GatewayStore {
  private readonly timings: StoreTimings;
  private readonly feeds: Feeds;
  private readonly registry: Registry;
  private readonly reaper: Reaper;
  private readonly acceptor: Acceptor;
  private readonly indexed = new Map<string, number>();

  constructor(private readonly options: GatewayStoreOptions) {
    const { commands, gatewayId, deliveries, logger } = options;
    this.timings = { ...defaultTimings, ...options.timings };
    const shared = { ...options, timings: this.timings };
    this.feeds = new Feeds(shared);
    this.registry = new Registry(shared);
    this.reaper = new Reaper(commands, deliveries, logger, this.timings);
    this.acceptor = new Acceptor(commands, gatewayId, this.timings, (project) => this.prepare(project));
  }

  /** Begins to attend and to reap. */
  start(): void {
    this.feeds.start();
    this.registry.start();
    this.reaper.start();
  }

  stop(): void {
    this.feeds.stop();
    this.registry.stop();
    this.reaper.stop();
  }

  /** True when the store answers within its limit. */
  async ready(): Promise<boolean> {
    try {
      await withinLimit(this.options.commands.ping(), this.timings.commandMs);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Accepts a run and, unless `live` is `none`, follows it from its first item. The reader is there before the answer is, and is closed
   * here when the run was not accepted.
   *
   * `accepted` rejects with `unavailable` when the store did not answer: an unanswered accept is no refusal, so a run that nobody was
   * promised is then cancelled as soon as the store is back.
   */
  accept(run: NewRun, live: Live): { accepted: Promise<Accepted>; reader?: RunReader } {
    const mode = live === 'items' ? 'i' : 'o';
    const reader = live === 'none' ? undefined : this.feeds.openNew(run.project, run.runId, mode);
    const accepted = this.acceptor.accept(run, live === 'none' ? '-' : mode).then(
      (answer) => {
        if (answer.state !== 'accepted') reader?.close();
        else if (reader) this.feeds.confirm(run.project, run.runId);
        return answer;
      },
      (error: unknown) => {
        reader?.close();
        if (!(error instanceof ServiceError)) throw error;
        if (error.code === 'unavailable' && !run.promised) void this.cancelLate(run);
        throw new ServiceError(error.code, error.message, {
          cause: error.cause,
          ...(error.code === 'unavailable' && { runId: run.runId }),
        });
      },
    );
    return reader ? { accepted, reader } : { accepted };
  }

  /** A reader of a run that exists, after item `cursor` (0: from the start). */
  read(project: string, runId: RunId, live: 'items' | 'outcome', cursor: number): RunReader {
    return this.feeds.open(project, runId, live === 'items' ? 'i' : 'o', cursor);
  }

  /** @throws ServiceError `unavailable` */
  look(project: string, runId: RunId): Promise<RunRecord | undefined> {
    return withinLimit(readRecord(this.options.commands, project, runId), this.timings.commandMs);
  }

  /** How far a run has come, without what it made. @throws ServiceError `unavailable` */
  extent(project: string, runId: RunId): Promise<RunExtent | undefined> {
    return withinLimit(readExtent(this.options.commands, project, runId), this.timings.commandMs);
  }

  /** All items of a run. @throws ServiceError `unavailable` */
  items(project: string, runId: RunId): Promise<ItemBatch[]> {
    return readItems(this.options.commands, project, runId, this.timings.commandMs);
  }

  /** Cancels a run and says what it was. @throws ServiceError `unavailable` */
  async cancel(project: string, runId: RunId): Promise<'queued' | 'running' | 'ended' | 'unknown'> {
    return withinLimit(this.callCancel(project, runId), this.timings.commandMs);
  }

  /** A run that would be cancelled at once without a reader goes on from now on, as one that was answered 202. @throws ServiceError `unavailable` */
  goOn(project: string, runId: RunId): Promise<void> {
    return withinLimit(keepGoing(this.options.commands, project, runId), this.timings.commandMs);
  }

  /** The project's apps by name. @throws ServiceError `unavailable` */
  apps(project: string): Promise<ReadonlyMap<string, AppDescription>> {
    return this.registry.apps(project);
  }

  private async callCancel(project: string, runId: RunId): Promise<'queued' | 'running' | 'ended' | 'unknown'> {
    const args = [this.timings.handoverMs, this.timings.tombstoneMs, runId, randomUUID()];
    const [[found, due]] = (await runScript(this.options.commands, 'cancel', project, args)) as [[Buffer, number]];
    if (due) this.options.deliveries.handOver(project, [runId]);
    return found.toString() as 'queued';
  }

  /** Without a time limit: the connection holds the command until Redis is back. */
  private async cancelLate(run: NewRun): Promise<void> {
    try {
      await this.callCancel(run.project, run.runId);
    } catch (error) {
      this.options.logger.warn({ err: error, runId: run.runId }, 'an unanswered run was not cancelled');
    }
  }

  /** Before a project's first accept: its channel is confirmed, and reap knows of it. */
  private async prepare(project: string): Promise<void> {
    await this.feeds.listen(project);
    const now = performance.now();
    if (now - (this.indexed.get(project) ?? -INDEX_MS) < INDEX_MS) return;
    await this.options.commands.zadd(projectsKey, Date.now(), project);
    this.indexed.set(project, now);
  }
}
