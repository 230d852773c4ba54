// Contract 4: begins and records the attempts of deliveries, and keeps their bytes. This record, not BullMQ's job, decides whether a delivery
// is done.
import { randomBytes } from 'node:crypto';
import { type DueDelivery, envelope, type Outcome, type RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { readItems } from '../runs/items.ts';
import { runScript, type ScriptArgument } from '../scripts.ts';
import { TickBatch } from '../tick-batch.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreTimings } from '../timings.ts';
import { ENVELOPE_PIECES, keptEnvelope } from './kept-envelope.ts';
import { type BeginReply, begunBy } from './stored-delivery.ts';

/** One attempt under way. */
export interface DeliveryTask {
  readonly project: string;
  readonly app: string;
  readonly runId: RunId;
  /** From 1, over all rounds of the schedule. */
  readonly attempt: number;
  /** Attempts before this round of the schedule. A redelivery starts the schedule again. */
  readonly earlier: number;
  /** Age of this round, ms. */
  readonly ageMs: number;
  /** Set if the delivery was parked until now. */
  readonly parked?: { readonly since: number; readonly reason: string };
  /** The call's trace (W3C Trace Context), if the call has one. */
  readonly traceparent?: string;
  /** Number of times that a worker has taken the run. */
  readonly runAttempt: number;
  /** `webhook-id`: the same on every attempt. */
  readonly deliveryId: string;
  readonly url: string;
  /** The sealed webhook secret. */
  readonly secret?: string;
  /** End of the run, Unix ms. */
  readonly endedAt: number;
  /** Number of earlier attempts of this round with a 4xx answer that stops early (Contract 4, "Retries"). */
  readonly refusals: number;
  /** The stored envelope, or the outcome from which the envelope is built. */
  readonly content: { readonly body: Buffer } | { readonly outcome: Outcome };
  /** Token of this attempt. A repeat of the job has another token and cannot record this attempt. */
  readonly token: string;
}

export type Begun =
  | { readonly state: 'begun'; readonly task: DeliveryTask }
  /** The delivery is delivered or failed, or this attempt was made already. */
  | { readonly state: 'settled' }
  /** Another attempt is under way. */
  | { readonly state: 'busy' }
  /** The attempt is not due yet by the store's clock. */
  | { readonly state: 'early'; readonly inMs: number }
  | { readonly state: 'gone' };

/** The result of one attempt. */
export interface AttemptRecord {
  /** Unix ms. */
  readonly at: number;
  readonly durationMs: number;
  /** The address that was dialled. */
  readonly address?: string;
  readonly status?: number;
  readonly errorClass?: string;
  readonly message?: string;
  /** Target of a redirect. */
  readonly location?: string;
  /** The first 4 KiB of the receiver's answer. */
  readonly answer?: string;
  readonly retryAfterS?: number;
}

/** The step after an attempt. `delayMs` counts from the record. `refusals` counts 4xx answers that stop early, including this answer. */
export type NextStep =
  | { readonly state: 'delivered' | 'failed' }
  | { readonly state: 'pending'; readonly delayMs: number; readonly refusals: number };

/** The reason why a delivery is parked: its receiver fails, or its share of open attempts is used. */
export type ParkReason = 'circuit_open' | 'host_busy' | 'project_busy';

export type Recorded = 'recorded' | 'superseded';

interface Beginning {
  readonly job: DueDelivery;
  readonly leaseMs: number;
}

interface Recording {
  readonly task: DeliveryTask;
  readonly text: string | Buffer;
  readonly next:
    | NextStep
    | { readonly state: 'parked'; readonly delayMs: number; readonly reason: ParkReason }
    | { readonly state: 'kept' };
}

const ANSWERS = ['superseded', 'recorded', 'again'] as const;
type RecordAnswer = (typeof ANSWERS)[number];

export class DeliveryStore {
  readonly #beginnings: TickBatch<Beginning, Begun>;
  readonly #recordings: TickBatch<Recording, RecordAnswer>;
  /** Tokens only need to be unique: this process' part is random, and the rest is a counter. */
  readonly #tokens = randomBytes(8).toString('hex');
  #begun = 0;

  readonly #redis: Redis;
  readonly #timings: StoreTimings;

  constructor(redis: Redis, timings: StoreTimings) {
    this.#redis = redis;
    this.#timings = timings;

    this.#beginnings = new TickBatch(
      (project, items) => this.#sendBeginnings(project, items),
      () => 0,
    );
    this.#recordings = new TickBatch(
      (project, items) => this.#sendRecordings(project, items),
      ({ text }) => text.length,
    );
  }

  /** Begins the attempt of a job under a lease of `leaseMs`. A delivery has one attempt at a time. */
  begin(job: DueDelivery, leaseMs: number): Promise<Begun> {
    return this.#beginnings.add(job.project, { job, leaseMs });
  }

  /**
   * Returns the envelope's bytes. They are built from the run at the first attempt and stored before they are sent. So every attempt and
   * redelivery sends the same bytes, even after a crash. Returns undefined if another attempt has begun since.
   */
  async body(task: DeliveryTask): Promise<Buffer | undefined> {
    const { project, runId, content } = task;
    if ('body' in content) return content.body;
    const { outcome } = content;
    const items =
      outcome.streamed && !outcome.error ? await readItems(this.#redis, project, runId, this.#timings.commandMs) : [];
    const bytes = envelope(runId, outcome, items);
    const text = keptEnvelope(bytes, outcome.result);
    const answer = await this.#recordings.add(project, { task, text, next: { state: 'kept' } });
    return answer === 'superseded' ? undefined : bytes;
  }

  /** Records an attempt before any later step. `superseded`: its lease has expired and another attempt has begun. */
  async record(task: DeliveryTask, attempt: AttemptRecord, next: NextStep): Promise<Recorded> {
    const record = { attempt: task.attempt, ...attempt, state: next.state };
    // Without its last brace, because the script appends values of the store's clock.
    const text = JSON.stringify(record).slice(0, -1);
    const answer = await this.#recordings.add(task.project, { task, text, next });
    return answer === 'again' ? 'recorded' : answer;
  }

  /**
   * Gives a begun attempt back unmade, because no slot is free. A slot wakes the delivery. After `delayMs` it is handed over without a slot.
   *
   * @returns `again` if its slot came in between: begin the attempt at once
   */
  park(task: DeliveryTask, reason: ParkReason, delayMs: number): Promise<RecordAnswer> {
    return this.#recordings.add(task.project, { task, text: '', next: { state: 'parked', delayMs, reason } });
  }

  async #sendBeginnings(project: string, items: Beginning[]): Promise<Begun[]> {
    const args: ScriptArgument[] = [Math.max(...items.map(({ leaseMs }) => leaseMs)), ...ENVELOPE_PIECES];
    const tokens = items.map(({ job }) => {
      this.#begun += 1;
      const token = `${this.#tokens}${this.#begun}`;
      args.push(job.runId, job.attempt, token);
      return token;
    });
    const replies = (await this.#call('delivery-begin', project, args)) as BeginReply[];
    return replies.map((reply, at) => begunBy((items[at] as Beginning).job, tokens[at] as string, reply));
  }

  async #sendRecordings(project: string, items: Recording[]): Promise<RecordAnswer[]> {
    const args: ScriptArgument[] = [this.#timings.handoverMs];
    for (const { task, text, next } of items) {
      args.push(task.runId, task.attempt, task.token, text, next.state, 'delayMs' in next ? next.delayMs : '');
      args.push(next.state === 'pending' ? next.refusals : next.state === 'parked' ? next.reason : '');
    }
    const replies = (await this.#call('delivery-record', project, args)) as number[];
    return replies.map((reply) => ANSWERS[reply] as RecordAnswer);
  }

  #call(name: 'delivery-begin' | 'delivery-record', project: string, args: ScriptArgument[]): Promise<unknown> {
    return withinLimit(runScript(this.#redis, name, project, args), this.#timings.commandMs);
  }
}
