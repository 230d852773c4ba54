// Contract 3, 5 and 9: writes the items, heads and outcomes of a worker's attempts. Writes of one tick share a script call.
import { type Outcome, type RunId, ServiceError } from '@inference-proxy/contracts';
import { retry } from '@inference-proxy/retry';
import type { Redis } from 'ioredis';
import { Lane } from '../lane.ts';
import { TickBatch, withinLimit } from '../redis.ts';
import { overShare } from '../runs/codec.ts';
import { runScript } from '../scripts.ts';
import type { StoreTimings } from '../timings.ts';
import { type Again, type Append, type AppendAnswer, appendScript } from './append.ts';
import { type End, type EndAnswer, type EndReply, endScript } from './end.ts';
import { type EncodedHead, encodedHead, type Head, type HeadAnswer, headScript } from './head.ts';
import { type LargeResult, type Reservation, reserveScript } from './reserve.ts';

/** Time after which a reservation is asked for again while a gateway makes room. */
const RETRY_MS = 200;
/** A larger result reserves room before it is sent (reserve.lua). */
const RESERVED_BYTES = 256 * 1024;

export interface AttemptWriterOptions {
  readonly redis: Redis;
  readonly timings: StoreTimings;
  /** Bytes of a plain stream that are kept. */
  readonly windowBytes: number;
  /** Hands the due webhooks of ended runs over. */
  readonly handOver: (project: string, runIds: readonly RunId[]) => void;
}

/** An attempt of a run. */
export interface Attempt {
  readonly runId: RunId;
  readonly token: string;
}

export class AttemptWriter {
  /** Paced attempts: the number of the last item that readers took. Items that they have not taken stay in the window. */
  readonly #positions = new Map<string, number>();
  readonly #appends: TickBatch<Append, AppendAnswer | Again>;
  readonly #heads: TickBatch<EncodedHead, HeadAnswer | 'again'>;
  readonly #reservations: TickBatch<LargeResult, Reservation>;
  readonly #ends: TickBatch<End, EndReply['answer']>;
  readonly #lane: Lane;

  readonly #options: AttemptWriterOptions;

  constructor(options: AttemptWriterOptions) {
    this.#options = options;

    this.#lane = new Lane(options.timings.commandMs);
    this.#appends = new TickBatch((project, appends) => this.#sendAppends(project, appends), appendBytes);
    this.#heads = new TickBatch(
      (project, heads) => this.#timely(runScript(options.redis, headScript, project, heads)),
      () => 0,
    );
    this.#reservations = new TickBatch(
      (project, results) => this.#timely(runScript(options.redis, reserveScript, project, results)),
      () => 0,
    );
    this.#ends = new TickBatch((project, ends) => this.#sendEnds(project, ends), endBytes);
  }

  /** @throws the errors of `WorkerStore.append` */
  append(project: string, append: Append): Promise<AppendAnswer> {
    return this.#appends.add(project, append).then(settled);
  }

  /** @throws the errors of `WorkerStore.head` */
  async head(project: string, head: Head): Promise<HeadAnswer> {
    const answer = await this.#heads.add(project, encodedHead(head));
    if (answer === 'again') throw makingRoom();
    return answer;
  }

  /** @throws the errors of `WorkerStore.append` */
  async end(project: string, end: End): Promise<EndAnswer> {
    // A large result that does not fit would fill Redis' buffers before its refusal. So its room is reserved first.
    if (endBytes(end) < RESERVED_BYTES || (await this.#reserved(project, end)))
      return this.#ends.add(project, end).then(settled);
    const answer = settled(await this.#ends.add(project, { ...end, outcome: tooLarge(end.outcome) }));
    return answer.state === 'ended' ? { state: 'refused' } : answer;
  }

  /** Keeps the readers' position of a paced attempt from now on. */
  pace(attempt: Attempt): void {
    this.#positions.set(keyOf(attempt), 0);
  }

  /** Readers have taken the items up to `upTo`. */
  moved(attempt: Attempt, upTo: number): void {
    const key = keyOf(attempt);
    const before = this.#positions.get(key);
    if (before !== undefined && upTo > before) this.#positions.set(key, upTo);
  }

  release(attempt: Attempt): void {
    this.#positions.delete(keyOf(attempt));
  }

  get pacedAttempts(): number {
    return this.#positions.size;
  }

  #sendAppends(project: string, appends: readonly Append[]): Promise<(AppendAnswer | Again)[]> {
    const { redis, windowBytes } = this.#options;
    const positionOf = (append: Append): number | undefined => this.#positions.get(keyOf(append));
    return this.#lane.call(total(appends, appendBytes), () =>
      runScript(redis, appendScript, project, { windowBytes, appends, positionOf }),
    );
  }

  async #sendEnds(project: string, ends: readonly End[]): Promise<EndReply['answer'][]> {
    const { redis, timings, handOver } = this.#options;
    const replies = await this.#lane.call(total(ends, endBytes), () =>
      runScript(redis, endScript, project, { handoverMs: timings.handoverMs, ends }),
    );
    handOver(
      project,
      ends.filter((_, at) => replies[at]?.webhookDue).map(({ runId }) => runId),
    );
    return replies.map(({ answer }) => answer);
  }

  /** Returns whether there is room for the outcome. If the worker has lost the attempt, the later call of `end` reports it. */
  async #reserved(project: string, end: End): Promise<boolean> {
    const { runId, token } = end;
    const reserve = async (): Promise<boolean> => {
      const reservation = await this.#reservations.add(project, { runId, token, bytes: endBytes(end) });
      if (reservation === 'again') throw makingRoom();
      return reservation !== 'full';
    };
    const failed = (error: unknown): void => {
      if (!(error instanceof ServiceError) || error.code !== 'overloaded') throw error;
    };
    return retry(reserve, { firstMs: RETRY_MS, failed });
  }

  #timely<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.#options.timings.commandMs);
  }
}

const makingRoom = (): ServiceError => new ServiceError('overloaded', 'The run store is making room; retry.');

/** @throws ServiceError `overloaded` */
function settled<A extends { readonly state: string }>(answer: A | Again): Exclude<A, Again> {
  if (answer.state === 'again') throw makingRoom();
  return answer as Exclude<A, Again>;
}

/** Returns the outcome that replaces an outcome without room in the project's share. */
const tooLarge = ({ items, streamed, runTimeMs }: Omit<Outcome, 'endedAt'>): Omit<Outcome, 'endedAt'> => ({
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

const keyOf = ({ runId, token }: Attempt): string => `${runId} ${token}`;
