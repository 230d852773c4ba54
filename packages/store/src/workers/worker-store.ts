// Contract 1, 3 and 5: the worker's interface to the run store. It takes runs, writes their items and outcomes, and renews their leases.
import type { AppDescription, RunId } from '@inference-proxy/contracts';
import { retry } from '@inference-proxy/retry';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { names } from '../keys.ts';
import { ProjectChannels, withinLimit } from '../redis.ts';
import type { ReplicaCounts } from '../registry/app-counts.ts';
import { announce, withdraw } from '../registry/registry.ts';
import { runScript } from '../scripts.ts';
import { storeError } from '../store-error.ts';
import { defaultTimings, type StoreLogger, type StoreTimings } from '../timings.ts';
import type { Append, AppendAnswer } from './append.ts';
import { type Attempt, AttemptWriter } from './attempt-writer.ts';
import type { End, EndAnswer } from './end.ts';
import type { Head, HeadAnswer } from './head.ts';
import { type LogPart, LogWriter } from './log.ts';
import { type RenewAnswer, renewScript } from './renew.ts';
import { queueIn, type TakenRun, type TakeRequest, takeScript } from './take.ts';
import { Wakes } from './wakes.ts';

export interface WorkerStoreOptions {
  readonly commands: Redis;
  /** A separate connection, because it only subscribes. */
  readonly subscriber: Redis;
  /** Unique among all workers that have ever run; letters and digits. */
  readonly workerId: string;
  readonly deliveries: DeliveryQueue;
  readonly logger: StoreLogger;
  readonly timings?: Partial<StoreTimings>;
  /** Bytes of a plain stream that are kept (`STREAM_WINDOW_BYTES`); default 2 MiB. */
  readonly windowBytes?: number;
  /** Bytes of a run's log that are kept, the newest (`RUN_LOG_MAX_BYTES`); default 256 KiB. */
  readonly maxLogBytes?: number;
}

const WINDOW_BYTES = 2 * 1024 * 1024;
const LOG_BYTES = 256 * 1024;

/** Bytes of parameters that one take hands over. One run may exceed the limit. */
const TAKE_BYTES = 1024 * 1024;
const RETRY_MS = 200;
/** A worker's takes from one project. */
interface Takes {
  /** Number of the last take. It rises. */
  number: number;
  readonly wakes: Wakes;
}

export class WorkerStore {
  /** Called when runs may be queued in the project, in `queue` if it is given. */
  onWake: (project: string, queue?: string) => void = () => {};
  onCancel: (run: { project: string; runId: RunId; token: string }) => void = () => {};
  /** Called when a reader has taken the items up to `upTo`. */
  onReaderPosition: (run: { project: string; runId: RunId; token: string; upTo: number }) => void = () => {};
  /**
   * Called when the store did not know this worker in the project, because its lease had expired or the store was emptied. Also called when
   * an app of this worker is not known, or is stored as broken by another worker.
   */
  onForgotten: (project: string) => void = () => {};

  readonly timings: StoreTimings;
  readonly #channels: ProjectChannels;
  readonly #takes = new Map<string, Takes>();
  readonly #writer: AttemptWriter;
  readonly #logs: LogWriter;
  readonly #closing = new AbortController();

  readonly #options: WorkerStoreOptions;

  constructor(options: WorkerStoreOptions) {
    this.#options = options;

    this.timings = { ...defaultTimings, ...options.timings };
    const { commands: redis, deliveries, windowBytes = WINDOW_BYTES } = options;
    const handOver = deliveries.handOver.bind(deliveries);
    this.#writer = new AttemptWriter({ redis, timings: this.timings, windowBytes, handOver });
    this.#logs = new LogWriter(redis, options.maxLogBytes ?? LOG_BYTES, this.timings.commandMs);
    this.#channels = new ProjectChannels({
      ...options,
      name: names.toWorker + options.workerId,
      onMessage: (project, message) => this.#heard(project, message),
      // Wakes before the confirmation were lost, so an earlier take could miss runs.
      onRestored: (project) => this.onWake(project),
    });
  }

  /** Subscribes to this worker's channel of the project. Must run before the project's first take. */
  async serve(project: string): Promise<void> {
    await this.#channels.subscribe(project);
    this.onWake(project);
  }

  async leave(project: string): Promise<void> {
    await this.#channels.leave(project);
  }

  /** Stops listening and repeating. */
  close(): void {
    this.#closing.abort();
    this.#channels.close();
  }

  /**
   * Takes queued runs. At most one call per project may be under way. The call is repeated under the same number until it is answered, so
   * no taken run is lost. If a queue has fewer runs than asked for, the next accept wakes this worker. `more`: take again at once.
   */
  async take(project: string, requests: readonly TakeRequest[]): Promise<{ runs: TakenRun[]; more: boolean }> {
    const takes = this.#takesOf(project);
    const number = ++takes.number;
    takes.wakes.asks(requests.map(queueIn));
    const { workerId, logger, commands } = this.#options;
    const args = { workerId, number, leaseMs: this.timings.leaseMs, maxBytes: TAKE_BYTES, requests };
    const take = async (): Promise<{ runs: TakenRun[]; more: boolean }> => {
      const { at, more, runs } = await runScript(commands, takeScript, project, args);
      takes.wakes.answered(at);
      const token = `${workerId}:${number}`;
      for (const { runId, paced } of runs) if (paced) this.#writer.pace({ runId, token });
      const taken = runs.map(({ place, ...run }): TakenRun => {
        const request = requests[place] as TakeRequest;
        const { version } = request;
        return { ...run, project, token, queue: queueIn(request), ...(version !== undefined && { version }) };
      });
      return { runs: taken, more };
    };
    const failed = (error: unknown): void =>
      logger.warn({ err: storeError(error), project }, 'a take failed; trying again');
    const { signal } = this.#closing;
    return retry(take, { firstMs: RETRY_MS, signal, failed }).catch(() => ({ runs: [], more: false }));
  }

  /** @throws ServiceError `unavailable`, `overloaded`: repeat the call while the lease holds. Repeats do no harm. */
  append(project: string, append: Append): Promise<AppendAnswer> {
    return this.#writer.append(project, append);
  }

  /**
   * Writes the head of a custom runtime's answer, before the run's first item. A repeat changes nothing. `lost`: another attempt holds the
   * run. `full`: the head does not fit into the project's share.
   *
   * @throws the errors of `append` and of `encodeHead`
   */
  head(project: string, head: Head): Promise<HeadAnswer> {
    return this.#writer.head(project, head);
  }

  /**
   * Adds lines to a run's log. The store keeps the newest lines. `lost`: another attempt holds the run.
   *
   * @throws ServiceError `unavailable`, `overloaded`: the lines may be missing, and a repeat may double them
   */
  log(project: string, part: LogPart): Promise<'ok' | 'lost'> {
    return this.#logs.write(project, part);
  }

  /** Ends an attempt, and hands a due webhook over. @throws the errors of `append` */
  end(project: string, end: End): Promise<EndAnswer> {
    return this.#writer.end(project, end);
  }

  /**
   * Forgets an attempt. Call it once for each taken run, for any end of the attempt: this object keeps the readers' position of every
   * paced attempt until then.
   */
  release(attempt: Attempt): void {
    this.#writer.release(attempt);
  }

  /** Number of paced attempts that were taken and not released. */
  get pacedAttempts(): number {
    return this.#writer.pacedAttempts;
  }

  /**
   * Renews the leases of this worker and of the attempts that it holds. Call it every `timings.renewMs`, once per project.
   *
   * @param apps the apps that the worker serves now, including starting apps, and the queues of its deployed versions
   * @returns one answer per run, in the order of `runs`
   */
  async renew(project: string, runs: readonly Attempt[], apps: readonly string[]): Promise<readonly RenewAnswer[]> {
    const args = { workerId: this.#options.workerId, leaseMs: this.timings.leaseMs, apps, runs };
    const renewed = runScript(this.#options.commands, renewScript, project, args);
    const { unknown, answers } = await withinLimit(renewed, this.timings.commandMs);
    if (unknown) this.onForgotten(project);
    for (const [at, answer] of answers.entries())
      if (answer.state === 'held') this.#writer.moved(runs[at] as Attempt, answer.position);
    return answers;
  }

  /** Announces an app to the gateways, unless it is not ready here and other workers serve it. Repeats do no harm and follow a restart of Redis. */
  announce(project: string, app: AppDescription, replicas?: ReplicaCounts): Promise<void> {
    const { commands, workerId } = this.#options;
    return withinLimit(announce(commands, project, app, workerId, replicas), this.timings.commandMs);
  }

  withdraw(project: string, app: string): Promise<void> {
    return withinLimit(withdraw(this.#options.commands, project, app, this.#options.workerId), this.timings.commandMs);
  }

  #heard(project: string, message: Buffer): void {
    for (const line of message.toString('latin1').split('\n')) {
      const [verb, subject = '', token = '', upTo] = line.split(' ');
      if (verb === 'wake') {
        this.#takesOf(project).wakes.woken(subject, Number(token));
      } else if (verb === 'cancel') {
        this.onCancel({ project, runId: subject, token });
      } else if (verb === 'taken') {
        this.#writer.moved({ runId: subject, token }, Number(upTo));
        this.onReaderPosition({ project, runId: subject, token, upTo: Number(upTo) });
      }
    }
  }

  #takesOf(project: string): Takes {
    let takes = this.#takes.get(project);
    if (takes === undefined) {
      takes = { number: 0, wakes: new Wakes((app) => this.onWake(project, app)) };
      this.#takes.set(project, takes);
    }
    return takes;
  }
}
