// Contract 4: one run's delivery, its attempts and its bytes. The record here, not BullMQ's, decides whether a repeat is already delivered.
import { randomBytes } from 'node:crypto';
import { type DueDelivery, envelope, type Outcome, type RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { readItems } from '../runs/items.ts';
import { outcomeOf } from '../runs/outcome-codec.ts';
import { runScript, type ScriptArgument } from '../scripts.ts';
import { TickBatch } from '../tick-batch.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreTimings } from '../timings.ts';

/** One attempt under way. */
export interface DeliveryTask {
  readonly project: string;
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
  /** The envelope where it was made before, else what it is made of. */
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
export type ParkReason = 'circuit_open' | 'host_busy';

export type Recorded = 'recorded' | 'superseded';

interface Beginning {
  readonly job: DueDelivery;
  readonly leaseMs: number;
}

interface Recording {
  readonly task: DeliveryTask;
  readonly text: string;
  readonly next: NextStep | { readonly state: 'parked'; readonly delayMs: number; readonly reason: ParkReason };
}

const ANSWERS = ['superseded', 'recorded', 'again'] as const;
type RecordAnswer = (typeof ANSWERS)[number];

export class DeliveryStore {
  private readonly beginnings: TickBatch<Beginning, Begun>;
  private readonly recordings: TickBatch<Recording, RecordAnswer>;
  /** Envelopes that were made for attempts under way: they are kept with the first one's record, where there is to be another. */
  private readonly made = new WeakMap<DeliveryTask, Buffer>();

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
      ({ task, text }) => text.length + (this.made.get(task)?.length ?? 0),
    );
  }

  /** Begins the attempt that a job stands for, under a lease of `leaseMs`; one at a time. */
  begin(job: DueDelivery, leaseMs: number): Promise<Begun> {
    return this.beginnings.add(job.project, { job, leaseMs });
  }

  /**
   * The envelope's bytes: made from the run at the first attempt and kept from its record on, so that every attempt sends the same. An attempt
   * that was never recorded leaves them to be made again, which gives the same bytes: they are a pure function of the run.
   */
  async body(task: DeliveryTask): Promise<Buffer> {
    const { project, runId, content } = task;
    if ('body' in content) return content.body;
    const { outcome } = content;
    const items =
      outcome.streamed && !outcome.error ? await readItems(this.redis, project, runId, this.timings.commandMs) : [];
    const bytes = envelope(runId, outcome, items);
    this.made.set(task, bytes);
    return bytes;
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
    const tokens = items.map(() => randomBytes(8).toString('hex'));
    const args: ScriptArgument[] = [Math.max(...items.map(({ leaseMs }) => leaseMs))];
    items.forEach(({ job }, at) => {
      args.push(job.runId, job.attempt, tokens[at] as string);
    });
    const replies = (await this.call('delivery-begin', project, args)) as BeginReply[];
    return replies.map((reply, at) => begun((items[at] as Beginning).job, tokens[at] as string, reply));
  }

  private async sendRecordings(project: string, items: Recording[]): Promise<RecordAnswer[]> {
    const args: ScriptArgument[] = [this.timings.handoverMs];
    for (const { task, text, next } of items) {
      args.push(task.runId, task.attempt, task.token, text, next.state, 'delayMs' in next ? next.delayMs : '');
      args.push(next.state === 'pending' ? next.refusals : next.state === 'parked' ? next.reason : '');
      args.push(next.state === 'pending' ? (this.made.get(task) ?? '') : '');
    }
    const replies = (await this.call('delivery-record', project, args)) as number[];
    return replies.map((reply) => ANSWERS[reply] as RecordAnswer);
  }

  private call(name: 'delivery-begin' | 'delivery-record', project: string, args: ScriptArgument[]): Promise<unknown> {
    return withinLimit(runScript(this.redis, name, project, args), this.timings.commandMs);
  }
}

type BegunReply = [
  state: Buffer,
  url: Buffer,
  secret: Buffer,
  refusals: number,
  endedAt: number,
  earlier: number,
  ageMs: number,
  parked: Buffer,
  traceparent: Buffer,
  runAttempt: number,
  envelope: Buffer,
  ...outcome: Buffer[],
];
type BeginReply = BegunReply | [state: Buffer, inMs: number] | [state: Buffer];

/** `webhook-id`: the same on every attempt and redelivery of a run's delivery. */
export const deliveryIdOf = (runId: RunId): string => `msg_${runId.replaceAll('-', '')}`;

function begun(job: DueDelivery, token: string, reply: BeginReply): Begun {
  const state = reply[0].toString() as Begun['state'];
  if (state === 'early') return { state, inMs: reply[1] as number };
  if (state !== 'begun') return { state };
  const [, url, secret, refusals, endedAt, earlier, ageMs, parked, trace, runAttempt, body, ...parts] =
    reply as BegunReply;
  const wait = parkedOf(parked.toString());
  return {
    state: 'begun',
    task: {
      project: job.project,
      runId: job.runId,
      attempt: job.attempt,
      deliveryId: deliveryIdOf(job.runId),
      url: url.toString(),
      ...(secret.length > 0 && { secret: secret.toString() }),
      refusals,
      endedAt,
      earlier,
      ageMs,
      ...(wait && { parked: wait }),
      ...(trace.length > 0 && { traceparent: trace.toString() }),
      runAttempt,
      content: body.length > 0 ? { body } : { outcome: storedOutcome(endedAt, parts) },
      token,
    },
  };
}

/** `<since> <reason>`, as the record keeps it. */
export function parkedOf(text: string | undefined): { since: number; reason: string } | undefined {
  const [since, reason] = text?.split(' ') ?? [];
  return since && reason ? { since: Number(since), reason } : undefined;
}

function storedOutcome(endedAt: number, parts: Buffer[]): Outcome {
  const [state, items, streamed, runTimeMs, status, result, error, head] = parts as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  return outcomeOf({
    state: state.toString(),
    items: Number(items),
    streamed: streamed.toString() === '1',
    runTimeMs: runTimeMs.toString(),
    endedAt,
    statusCode: Number(status),
    result,
    error,
    head,
  });
}
