// Contract 1, 3 and 5: the worker's interface to the run store. It takes runs, writes their items and outcomes, and renews their leases.
import {
  type AnswerHead,
  type AppDescription,
  encodeHead,
  type ItemBatch,
  type Outcome,
  type RunId,
  ServiceError,
} from '@inference-proxy/contracts';
import { retry } from '@inference-proxy/retry';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { names, projectPrefix } from '../keys.ts';
import { Kinds } from '../kinds.ts';
import { Lane } from '../lane.ts';
import { announce, withdraw } from '../registry/registry.ts';
import { outcomeKind } from '../runs/outcome-codec.ts';
import { overShare } from '../runs/over-share.ts';
import { runScript, type ScriptArgument } from '../scripts.ts';
import { storeError } from '../store-error.ts';
import { TickBatch } from '../tick-batch.ts';
import { withinLimit } from '../time-limit.ts';
import { defaultTimings, type StoreLogger, type StoreTimings } from '../timings.ts';
import { type LogPart, LogWriter } from './log-writer.ts';
import { type TakenRun, takenRuns } from './taken-runs.ts';

/** `taken`: number of the last item that a reader has taken, as far as known (0 at first). */
export type AppendAnswer =
  | { readonly state: 'ok'; readonly taken: number; readonly cancel: boolean }
  /** Items after `last` are missing. The worker must resend them. */
  | { readonly state: 'behind'; readonly last: number }
  /** Another attempt holds the run, or the run has ended. */
  | { readonly state: 'lost' }
  /** The items exceed the project's share (Contract 9). Nothing was written. */
  | { readonly state: 'full' };

/** The answer of `head`. The words mean the same as in `AppendAnswer`. */
export type HeadAnswer = 'ok' | 'lost' | 'full';

/** `refused`: the run ended as `output_too_large`, because its outcome does not fit into the project's share (Contract 9). */
export type EndAnswer =
  | { readonly state: 'ended' | 'refused' | 'requeued' | 'lost' }
  | { readonly state: 'behind'; readonly last: number };

export type RenewAnswer =
  | { readonly state: 'held'; readonly taken: number; readonly cancel: boolean }
  | { readonly state: 'lost' };

export interface Append {
  readonly runId: RunId;
  readonly token: string;
  readonly batch: ItemBatch;
}

export interface Head {
  readonly runId: RunId;
  readonly token: string;
  readonly head: AnswerHead;
}

export interface End {
  readonly runId: RunId;
  readonly token: string;
  readonly outcome: Omit<Outcome, 'endedAt'>;
  /** Puts the run back into the queue once, if the run has no item, no head and no cancel request (`retry_on_crash`). */
  readonly retry?: boolean;
  /** The app's version that executed the run. Set only if the take named another version. */
  readonly version?: string;
}

/** What a worker takes of one app. */
export interface Want {
  readonly app: string;
  /** The number of runs. With 0, the worker stops waiting for the app. */
  readonly slots: number;
  /** The app's version that the worker serves. The record of each taken run names this version. */
  readonly version?: string | undefined;
}

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
/** A larger result reserves room before it is sent (lua/reserve). */
const RESERVED_BYTES = 256 * 1024;

type Room = 'ok' | 'full' | 'again' | 'lost';

/** A wake from at most this long before a take's answer is outdated. An older wake comes from a clock that has stepped back, so it counts. */
const OLD_WAKE_US = 1_000_000;

/** A worker's takes from one project. Times are the store's, µs. */
interface Takes {
  /** Number of the last take. It rises. */
  number: number;
  /** By app: time of the last answer to a take that asked for the app. Earlier wakes are outdated. */
  readonly answered: Map<string, number>;
  /** The apps of the take that is under way, and their versions. */
  asked: ReadonlyMap<string, string | undefined>;
  /** By app: time of a wake that came during a take. It is compared with the take's answer. */
  readonly held: Map<string, number>;
}

export class WorkerStore {
  /** Called when runs may be queued in the project, for `app` if it is given. */
  onWake: (project: string, app?: string) => void = () => {};
  onCancel: (run: { project: string; runId: RunId; token: string }) => void = () => {};
  /** Called when a reader has taken the items up to `upTo`. */
  onTaken: (run: { project: string; runId: RunId; token: string; upTo: number }) => void = () => {};
  /**
   * Called when the store did not know this worker in the project, because its lease had expired or the store was emptied. Also called when
   * an app of this worker is not known, or is stored as broken by another worker.
   */
  onForgotten: (project: string) => void = () => {};

  readonly timings: StoreTimings;
  readonly #served = new Set<string>();
  readonly #takes = new Map<string, Takes>();
  /** Paced attempts: the number of the last item that readers took. Items that they have not taken stay in the window. */
  readonly #taken = new Map<string, number>();
  readonly #appends: TickBatch<Append, AppendAnswer | Again>;
  readonly #heads: TickBatch<readonly ScriptArgument[], HeadAnswer | 'again'>;
  readonly #reservations: TickBatch<End, Room>;
  readonly #logs: LogWriter;
  readonly #ends: TickBatch<End, EndAnswer | Again>;
  readonly #lane: Lane;
  readonly #closing = new AbortController();

  readonly #options: WorkerStoreOptions;

  constructor(options: WorkerStoreOptions) {
    this.#options = options;

    this.timings = { ...defaultTimings, ...options.timings };
    this.#lane = new Lane(this.timings.commandMs);
    this.#appends = new TickBatch((project, items) => this.#sendAppends(project, items), appendBytes);
    this.#heads = new TickBatch(
      (project, items) => this.#sendHeads(project, items),
      () => 0,
    );
    this.#reservations = new TickBatch(
      (project, items) => this.#sendReservations(project, items),
      () => 0,
    );
    this.#ends = new TickBatch((project, items) => this.#sendEnds(project, items), endBytes);
    this.#logs = new LogWriter(options.commands, options.maxLogBytes ?? LOG_BYTES, this.timings.commandMs);
    options.subscriber.on('smessageBuffer', this.#onMessage);
    options.subscriber.on('ready', this.#onReady);
  }

  /** Subscribes to this worker's channel of the project. Must run before the project's first take. */
  async serve(project: string): Promise<void> {
    await this.#options.subscriber.ssubscribe(this.#channel(project));
    this.#served.add(project);
    this.onWake(project);
  }

  async leave(project: string): Promise<void> {
    this.#served.delete(project);
    await this.#options.subscriber.sunsubscribe(this.#channel(project));
  }

  /** Stops listening and repeating. */
  close(): void {
    this.#closing.abort();
    this.#options.subscriber.off('smessageBuffer', this.#onMessage);
    this.#options.subscriber.off('ready', this.#onReady);
  }

  /**
   * Takes queued runs. At most one call per project may be under way. The call is repeated under the same number until it is answered, so
   * no taken run is lost. If a queue has fewer runs than asked for, the next accept wakes this worker. `more`: take again at once.
   */
  async take(project: string, wants: readonly Want[]): Promise<{ runs: TakenRun[]; more: boolean }> {
    const takes = this.#takesOf(project);
    takes.number++;
    takes.asked = new Map(wants.map(({ app, version }) => [app, version]));
    const { workerId, logger } = this.#options;
    const args: ScriptArgument[] = [workerId, takes.number, this.timings.leaseMs, TAKE_BYTES];
    for (const want of wants) args.push(want.app, want.slots, want.version ?? '');
    const take = async (): Promise<{ runs: TakenRun[]; more: boolean }> => {
      const reply = (await runScript(this.#options.commands, 'take', project, args)) as [number, number, ...Buffer[]];
      const [answeredAt, more, ...values] = reply;
      const token = `${workerId}:${takes.number}`;
      const runs = takenRuns(project, token, takes.asked, values);
      this.#answered(project, takes, answeredAt);
      for (const { runId, paced } of runs) if (paced) this.#taken.set(attemptOf(runId, token), 0);
      return { runs, more: more === 1 };
    };
    const failed = (error: unknown): void =>
      logger.warn({ err: storeError(error), project }, 'a take failed; trying again');
    const { signal } = this.#closing;
    return retry(take, { firstMs: RETRY_MS, signal, failed }).catch(() => ({ runs: [], more: false }));
  }

  /** @throws ServiceError `unavailable`, `overloaded`: repeat the call while the lease holds. Repeats do no harm. */
  append(project: string, append: Append): Promise<AppendAnswer> {
    return this.#appends.add(project, append).then(settled);
  }

  /**
   * Writes the head of a custom runtime's answer, before the run's first item. A repeat changes nothing. `lost`: another attempt holds the
   * run. `full`: the head does not fit into the project's share.
   *
   * @throws the errors of `append` and of `encodeHead`
   */
  async head(project: string, { runId, token, head }: Head): Promise<HeadAnswer> {
    const answer = await this.#heads.add(project, [runId, token, encodeHead(head)]);
    if (answer === 'again') throw roomIsMade();
    return answer;
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
  async end(project: string, end: End): Promise<EndAnswer> {
    // A large result that does not fit would fill Redis' buffers before its refusal. So its room is reserved first.
    if (endBytes(end) < RESERVED_BYTES || (await this.#reserved(project, end)))
      return this.#ends.add(project, end).then(settled);
    const answer = settled(await this.#ends.add(project, { ...end, outcome: tooLarge(end.outcome) }));
    return answer.state === 'ended' ? { state: 'refused' } : answer;
  }

  /**
   * Forgets an attempt. Call it once for each taken run, for any end of the attempt: this object keeps the readers' position of every
   * paced attempt until then.
   */
  release({ runId, token }: { readonly runId: RunId; readonly token: string }): void {
    this.#taken.delete(attemptOf(runId, token));
  }

  /** Number of paced attempts that were taken and not released. */
  get pacedAttempts(): number {
    return this.#taken.size;
  }

  /**
   * Renews the leases of this worker and of the attempts that it holds. Call it every `timings.renewMs`, once per project.
   *
   * @param apps the apps that the worker serves now, including starting apps
   * @returns one answer per run, in the order of `runs`
   */
  async renew(
    project: string,
    runs: readonly { runId: RunId; token: string }[],
    apps: readonly string[],
  ): Promise<RenewAnswer[]> {
    const args: ScriptArgument[] = [this.#options.workerId, this.timings.leaseMs, apps.length, ...apps];
    for (const run of runs) args.push(run.runId, run.token);
    const [unknown, answers] = (await withinLimit(
      runScript(this.#options.commands, 'renew', project, args),
      this.timings.commandMs,
    )) as [number, [number, number, number][]];
    if (unknown) this.onForgotten(project);
    return answers.map(([held, taken, cancel], at) => {
      const { runId, token } = runs[at] as { runId: RunId; token: string };
      if (!held) return { state: 'lost' };
      this.#took(runId, token, taken);
      return { state: 'held', taken, cancel: cancel === 1 };
    });
  }

  /** Announces an app to the gateways, unless it is not ready here and other workers serve it. Repeats do no harm and follow a restart of Redis. */
  announce(project: string, app: AppDescription): Promise<void> {
    const { commands, workerId } = this.#options;
    return withinLimit(announce(commands, project, app, workerId), this.timings.commandMs);
  }

  withdraw(project: string, app: string): Promise<void> {
    return withinLimit(withdraw(this.#options.commands, project, app, this.#options.workerId), this.timings.commandMs);
  }

  #channel(project: string): string {
    return projectPrefix(project) + names.toWorker + this.#options.workerId;
  }

  /** Takes after the subscription is confirmed. Wakes before it were lost, so an earlier take could miss runs. */
  readonly #onReady = (): void => {
    for (const project of this.#served) {
      this.#options.subscriber.ssubscribe(this.#channel(project)).then(
        () => this.onWake(project),
        (error: unknown) =>
          this.#options.logger.warn(
            { err: error, project },
            'the subscription after a reconnect failed; the next reconnect repeats it',
          ),
      );
    }
  };

  readonly #onMessage = (channel: Buffer, message: Buffer): void => {
    const name = channel.toString('latin1');
    const project = name.slice(name.indexOf('{') + 1, name.indexOf('}'));
    for (const line of message.toString('latin1').split('\n')) {
      const [verb, subject, token, upTo] = line.split(' ') as [string, string, string, string];
      if (verb === 'wake') {
        this.#woken(project, subject, Number(token));
      } else if (verb === 'cancel') {
        this.onCancel({ project, runId: subject, token });
      } else if (verb === 'taken') {
        this.#took(subject, token, Number(upTo));
        this.onTaken({ project, runId: subject, token, upTo: Number(upTo) });
      }
    }
  };

  #takesOf(project: string): Takes {
    let takes = this.#takes.get(project);
    if (takes === undefined) {
      takes = { number: 0, answered: new Map(), asked: new Map(), held: new Map() };
      this.#takes.set(project, takes);
    }
    return takes;
  }

  #woken(project: string, app: string, at: number): void {
    const { answered, asked, held } = this.#takesOf(project);
    if (asked.has(app)) {
      held.set(app, at);
      return;
    }
    const age = (answered.get(app) ?? 0) - at;
    if (age <= 0 || age > OLD_WAKE_US) this.onWake(project, app);
  }

  #answered(project: string, takes: Takes, at: number): void {
    for (const app of takes.asked.keys()) takes.answered.set(app, at);
    takes.asked = new Map();
    const held = [...takes.held];
    takes.held.clear();
    for (const [app, wokenAt] of held) this.#woken(project, app, wokenAt);
  }

  #took(runId: RunId, token: string, upTo: number): void {
    const attempt = attemptOf(runId, token);
    const before = this.#taken.get(attempt);
    if (before !== undefined && upTo > before) this.#taken.set(attempt, upTo);
  }

  async #sendAppends(project: string, items: Append[]): Promise<(AppendAnswer | Again)[]> {
    const args: ScriptArgument[] = [this.#options.windowBytes ?? WINDOW_BYTES];
    for (const { runId, token, batch } of items) {
      args.push(runId, token, batch.first, batch.count, batch.kind, batch.blob);
      args.push(this.#taken.get(attemptOf(runId, token)) ?? '-');
    }
    const answers = (await this.#lane.call(total(items, appendBytes), () =>
      runScript(this.#options.commands, 'append', project, args),
    )) as [Buffer, number, number, number][];
    return answers.map(([code, last, taken, cancel]) => {
      const state = code.toString() as (AppendAnswer | Again)['state'];
      if (state === 'ok') return { state, taken, cancel: cancel === 1 };
      return state === 'behind' ? { state, last } : { state };
    });
  }

  /** Returns whether there is room for the outcome. If the worker has lost the attempt, the later call of `end` reports it. */
  async #reserved(project: string, end: End): Promise<boolean> {
    const reserve = async (): Promise<boolean> => {
      const room = await this.#reservations.add(project, end);
      if (room === 'again') throw roomIsMade();
      return room !== 'full';
    };
    const failed = (error: unknown): void => {
      if (!(error instanceof ServiceError) || error.code !== 'overloaded') throw error;
    };
    return retry(reserve, { firstMs: RETRY_MS, failed });
  }

  async #sendReservations(project: string, items: End[]): Promise<Room[]> {
    const args = items.flatMap((end): ScriptArgument[] => [end.runId, end.token, endBytes(end)]);
    const asked = runScript(this.#options.commands, 'reserve', project, args);
    return ((await withinLimit(asked, this.timings.commandMs)) as Buffer[]).map((code) => code.toString() as Room);
  }

  async #sendHeads(project: string, items: (readonly ScriptArgument[])[]): Promise<(HeadAnswer | 'again')[]> {
    const sent = runScript(this.#options.commands, 'head', project, items.flat());
    const codes = (await withinLimit(sent, this.timings.commandMs)) as Buffer[];
    return codes.map((code) => code.toString() as 'ok');
  }

  async #sendEnds(project: string, items: End[]): Promise<(EndAnswer | Again)[]> {
    const kinds = new Kinds();
    const runs: ScriptArgument[] = [];
    for (const { runId, token, outcome, retry, version } of items) {
      const kind = kinds.number([...outcomeKind(outcome), retry ? 1 : 0, version ?? '']);
      runs.push(kind, runId, token, outcome.runTimeMs, outcome.result ?? '');
    }
    const args: ScriptArgument[] = [this.timings.handoverMs, kinds.count, ...kinds.values, ...runs];
    const answers = (await this.#lane.call(total(items, endBytes), () =>
      runScript(this.#options.commands, 'end', project, args),
    )) as unknown[];
    const due: RunId[] = [];
    const ends = items.map(({ runId }, at): EndAnswer | Again => {
      const state = String(answers[at * 3]) as (EndAnswer | Again)['state'];
      if (answers[at * 3 + 2] === 1) due.push(runId);
      if (state === 'behind') return { state, last: answers[at * 3 + 1] as number };
      return { state };
    });
    this.#options.deliveries.handOver(project, due);
    return ends;
  }
}

/** A gateway makes room now, so the same write may fit soon. */
interface Again {
  readonly state: 'again';
}

const roomIsMade = (): ServiceError => new ServiceError('overloaded', 'The run store is making room; retry.');

/** @throws ServiceError `overloaded` */
function settled<A extends { readonly state: string }>(answer: A | Again): Exclude<A, Again> {
  if (answer.state === 'again') throw roomIsMade();
  return answer as Exclude<A, Again>;
}

/** Returns the outcome that replaces an outcome without room in the project's share. */
const tooLarge = ({ items, streamed, runTimeMs }: End['outcome']): End['outcome'] => ({
  state: 'failed',
  items,
  streamed,
  runTimeMs,
  error: overShare,
});

const appendBytes = ({ batch }: Append): number => batch.blob.length;
const endBytes = ({ outcome }: End): number => outcome.result?.length ?? 0;

const total = <Item>(items: readonly Item[], bytesOf: (item: Item) => number): number =>
  items.reduce((bytes, item) => bytes + bytesOf(item), 0);

const attemptOf = (runId: RunId, token: string): string => `${runId} ${token}`;
