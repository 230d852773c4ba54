// Contract 4: begins and records the attempts of deliveries, and keeps their bytes. This record, not BullMQ's job, decides whether a delivery
// is done.
import { randomBytes } from 'node:crypto';
import { type DueDelivery, envelope } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { TickBatch, withinLimit } from '../redis.ts';
import { readItems } from '../runs/items.ts';
import { runScript } from '../scripts.ts';
import type { StoreTimings } from '../timings.ts';
import { type Beginning, type Begun, beginScript, type DeliveryTask, deliveryIdOf } from './delivery-begin.ts';
import { type NextStep, type ParkReason, type RecordAnswer, type Recording, recordScript } from './delivery-record.ts';
import { keptEnvelope } from './kept-envelope.ts';

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
  /** The headers that were sent, without the values of signatures. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Target of a redirect. */
  readonly location?: string;
  /** The first 4 KiB of the receiver's answer. */
  readonly answer?: string;
  readonly retryAfterS?: number;
}

export type Recorded = 'recorded' | 'superseded';

interface LeasedBeginning extends Beginning {
  readonly leaseMs: number;
}

export class DeliveryStore {
  readonly #beginnings: TickBatch<LeasedBeginning, Begun>;
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
    this.#begun += 1;
    const token = `${this.#tokens}${this.#begun}`;
    return this.#beginnings.add(job.project, { job, token, leaseMs });
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

  async #sendBeginnings(project: string, beginnings: LeasedBeginning[]): Promise<Begun[]> {
    const leaseMs = Math.max(...beginnings.map((beginning) => beginning.leaseMs));
    const begun = runScript(this.#redis, beginScript, project, { leaseMs, beginnings });
    const replies = await withinLimit(begun, this.#timings.commandMs);
    return replies.map((reply, at): Begun => {
      if (reply.state !== 'begun') return reply;
      const { job, token } = beginnings[at] as Beginning;
      const { runId, attempt } = job;
      return {
        state: 'begun',
        task: { project, runId, attempt, deliveryId: deliveryIdOf(runId), token, ...reply.parts },
      };
    });
  }

  #sendRecordings(project: string, recordings: Recording[]): Promise<RecordAnswer[]> {
    const { handoverMs, commandMs } = this.#timings;
    return withinLimit(runScript(this.#redis, recordScript, project, { handoverMs, recordings }), commandMs);
  }
}
