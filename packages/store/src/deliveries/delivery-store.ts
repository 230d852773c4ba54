// Contract 4: one run's delivery, its attempts and its bytes. The record here, not BullMQ's, decides whether a repeat is already delivered.
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
  /** From 1, over all rounds. */
  readonly attempt: number;
  /** Attempts before this round of the schedule: a redelivery begins the schedule anew. */
  readonly earlier: number;
  /** How long this round has lasted, ms. */
  readonly ageMs: number;
  /** Set where it was parked until now. */
  readonly parked?: { readonly since: number; readonly reason: string };
  /** The call's trace (W3C Trace Context), where it has one. */
  readonly traceparent?: string;
  /** How often the run was taken by a worker. */
  readonly runAttempt: number;
  /** `webhook-id`: the same on every attempt. */
  readonly deliveryId: string;
  readonly url: string;
  /** Sealed. */
  readonly secret?: string;
  /** When the run ended, Unix ms. */
  readonly endedAt: number;
  /** How many earlier attempts of this round were answered with a 4xx that does not pass. */
  readonly refusals: number;
  /** The envelope where it is kept already, else what it is made of. */
  readonly content: { readonly body: Buffer } | { readonly outcome: Outcome };
  /** Names this attempt: a repeat of the job does not record under it. */
  readonly token: string;
}

export type Begun =
  | { readonly state: 'begun'; readonly task: DeliveryTask }
  /** Delivered, given up, or this attempt was made already. */
  | { readonly state: 'settled' }
  /** Another attempt is under way. */
  | { readonly state: 'busy' }
  /** Not due yet by the store's clock. */
  | { readonly state: 'early'; readonly inMs: number }
  | { readonly state: 'gone' };

/** What came of one attempt. */
export interface AttemptRecord {
  /** Unix ms. */
  readonly at: number;
  readonly durationMs: number;
  /** The address that was dialled. */
  readonly address?: string;
  readonly status?: number;
  readonly errorClass?: string;
  readonly message?: string;
  /** Where a redirect pointed. */
  readonly location?: string;
  /** The first 4 KiB of the answer. */
  readonly answer?: string;
  readonly retryAfterS?: number;
}

/** What follows from an attempt. `delayMs` from its record on; `refusals` counts 4xx answers that do not pass, this one included. */
export type NextStep =
  | { readonly state: 'delivered' | 'failed' }
  | { readonly state: 'pending'; readonly delayMs: number; readonly refusals: number };

/** Why a delivery is parked: its receiver fails, or has its share of attempts open. */
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
  private readonly beginnings: TickBatch<Beginning, Begun>;
  private readonly recordings: TickBatch<Recording, RecordAnswer>;
  /** Tokens only have to differ: this process' part of them is random, the rest counts. */
  private readonly tokens = randomBytes(8).toString('hex');
  private begun = 0;

  constructor(
    private readonly redis: Redis,
    private readonly timings: StoreTimings,
  ) {
    this.beginnings = new TickBatch(
      (project, items) => this.sendBeginnings(project, items),
      () => 0,
    );
    this.recordings = new TickBatch(
      (project, items) => this.sendRecordings(project, items),
      ({ text }) => text.length,
    );
  }

  /** Begins the attempt that a job stands for, under a lease of `leaseMs`; one at a time. */
  begin(job: DueDelivery, leaseMs: number): Promise<Begun> {
    return this.beginnings.add(job.project, { job, leaseMs });
  }

  /**
   * The envelope's bytes: made from the run at the first attempt and kept before it is sent, so that every attempt and redelivery sends the
   * same, whatever dies in between. Nothing where another attempt has begun since.
   */
  async body(task: DeliveryTask): Promise<Buffer | undefined> {
    const { project, runId, content } = task;
    if ('body' in content) return content.body;
    const { outcome } = content;
    const items =
      outcome.streamed && !outcome.error ? await readItems(this.redis, project, runId, this.timings.commandMs) : [];
    const bytes = envelope(runId, outcome, items);
    const text = keptEnvelope(bytes, outcome.result);
    const answer = await this.recordings.add(project, { task, text, next: { state: 'kept' } });
    return answer === 'superseded' ? undefined : bytes;
  }

  /** Records an attempt before anything follows from it. `superseded`: its lease ran out and another attempt began. */
  async record(task: DeliveryTask, attempt: AttemptRecord, next: NextStep): Promise<Recorded> {
    const record = { attempt: task.attempt, ...attempt, state: next.state };
    // Without its last brace: the script adds what the store's clock says.
    const text = JSON.stringify(record).slice(0, -1);
    const answer = await this.recordings.add(task.project, { task, text, next });
    return answer === 'again' ? 'recorded' : answer;
  }

  /**
   * Gives a begun attempt back unmade, for its receiver's slots are all taken. Its slot wakes it; `delayMs` is when it is handed out without.
   *
   * @returns `again` where its slot came meanwhile: it is to be begun at once
   */
  park(task: DeliveryTask, reason: ParkReason, delayMs: number): Promise<RecordAnswer> {
    return this.recordings.add(task.project, { task, text: '', next: { state: 'parked', delayMs, reason } });
  }

  private async sendBeginnings(project: string, items: Beginning[]): Promise<Begun[]> {
    const args: ScriptArgument[] = [Math.max(...items.map(({ leaseMs }) => leaseMs)), ...ENVELOPE_PIECES];
    const tokens = items.map(({ job }) => {
      this.begun += 1;
      const token = `${this.tokens}${this.begun}`;
      args.push(job.runId, job.attempt, token);
      return token;
    });
    const replies = (await this.call('delivery-begin', project, args)) as BeginReply[];
    return replies.map((reply, at) => begunBy((items[at] as Beginning).job, tokens[at] as string, reply));
  }

  private async sendRecordings(project: string, items: Recording[]): Promise<RecordAnswer[]> {
    const args: ScriptArgument[] = [this.timings.handoverMs];
    for (const { task, text, next } of items) {
      args.push(task.runId, task.attempt, task.token, text, next.state, 'delayMs' in next ? next.delayMs : '');
      args.push(next.state === 'pending' ? next.refusals : next.state === 'parked' ? next.reason : '');
    }
    const replies = (await this.call('delivery-record', project, args)) as number[];
    return replies.map((reply) => ANSWERS[reply] as RecordAnswer);
  }

  private call(name: 'delivery-begin' | 'delivery-record', project: string, args: ScriptArgument[]): Promise<unknown> {
    return withinLimit(runScript(this.redis, name, project, args), this.timings.commandMs);
  }
}
