// Contract 4: one run's delivery, its attempts and its bytes. The record here, not BullMQ's, decides whether a repeat is already delivered.
import { randomBytes } from 'node:crypto';
import { type DeliveryJob, envelope, type Outcome, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
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
  /** From 1. */
  readonly attempt: number;
  /** `webhook-id`: the same on every attempt. */
  readonly deliveryId: string;
  readonly url: string;
  /** Sealed. */
  readonly secret?: string;
  /** When the run ended, Unix ms. */
  readonly endedAt: number;
  /** How many earlier attempts were answered with a 4xx that does not pass. */
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

/** What follows from an attempt. `at` is Unix ms; `refusals` counts 4xx answers that do not pass, this one included. */
export type NextStep =
  | { readonly state: 'delivered' | 'failed' }
  | { readonly state: 'pending'; readonly at: number; readonly refusals: number };

interface Beginning {
  readonly job: DeliveryJob;
  readonly leaseMs: number;
}

interface Recording {
  readonly task: DeliveryTask;
  readonly text: string;
  readonly next: NextStep | { readonly state: 'parked'; readonly at: number };
}

interface Kept {
  readonly runId: RunId;
  readonly bytes: Buffer;
}

export class DeliveryStore {
  private readonly beginnings: TickBatch<Beginning, Begun>;
  private readonly recordings: TickBatch<Recording, 'recorded' | 'superseded'>;
  private readonly envelopes: TickBatch<Kept, void>;

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
    this.envelopes = new TickBatch(
      (project, items) => this.keepEnvelopes(project, items),
      ({ bytes }) => bytes.length,
    );
  }

  /** Begins the attempt that a job stands for, under a lease of `leaseMs`; one at a time. */
  begin(job: DeliveryJob, leaseMs: number): Promise<Begun> {
    return this.beginnings.add(job.project, { job, leaseMs });
  }

  /** The envelope's bytes: made from the run once and kept until the delivery is settled, so that every attempt sends the same. */
  async body(task: DeliveryTask): Promise<Buffer> {
    const { project, runId, content } = task;
    if ('body' in content) return content.body;
    const { outcome } = content;
    const items =
      outcome.streamed && !outcome.error ? await readItems(this.redis, project, runId, this.timings.commandMs) : [];
    const bytes = envelope(runId, outcome, items);
    await this.envelopes.add(project, { runId, bytes });
    return bytes;
  }

  /** Records an attempt before anything follows from it. `superseded`: its lease ran out and another attempt began. */
  record(task: DeliveryTask, attempt: AttemptRecord, next: NextStep): Promise<'recorded' | 'superseded'> {
    const text = JSON.stringify({ attempt: task.attempt, ...attempt, next: next.state });
    return this.recordings.add(task.project, { task, text, next });
  }

  /** Gives a begun attempt back unmade, for its receiver has its share of attempts open: it is due again at `at` (Unix ms). */
  park(task: DeliveryTask, at: number): Promise<'recorded' | 'superseded'> {
    return this.recordings.add(task.project, { task, text: '', next: { state: 'parked', at } });
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

  private async sendRecordings(project: string, items: Recording[]): Promise<('recorded' | 'superseded')[]> {
    const args: ScriptArgument[] = [this.timings.handoverMs];
    for (const { task, text, next } of items) {
      args.push(task.runId, task.attempt, task.token, text, next.state, 'at' in next ? next.at : '');
      args.push(next.state === 'pending' ? next.refusals : '');
    }
    const replies = (await this.call('delivery-record', project, args)) as number[];
    return replies.map((reply) => (reply === 1 ? 'recorded' : 'superseded'));
  }

  private async keepEnvelopes(project: string, items: Kept[]): Promise<undefined[]> {
    const pipeline = this.redis.pipeline();
    for (const { runId, bytes } of items) pipeline.hset(projectPrefix(project) + names.run + runId, 'envelope', bytes);
    const answers = (await withinLimit(pipeline.exec(), this.timings.commandMs)) ?? [];
    const [error] = answers.find(([failure]) => failure !== null) ?? [];
    if (error) throw new ServiceError('unavailable', 'The run store did not keep an envelope.', { cause: error });
    return items.map(() => undefined);
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
  envelope: Buffer,
  ...outcome: Buffer[],
];
type BeginReply = BegunReply | [state: Buffer];

function begun(job: DeliveryJob, token: string, reply: BeginReply): Begun {
  const state = reply[0].toString() as Begun['state'];
  if (state !== 'begun') return { state };
  const [, url, secret, refusals, endedAt, body, ...parts] = reply as BegunReply;
  return {
    state: 'begun',
    task: {
      project: job.project,
      runId: job.runId,
      attempt: job.attempt,
      deliveryId: `msg_${job.runId.replaceAll('-', '')}`,
      url: url.toString(),
      ...(secret.length > 0 && { secret: secret.toString() }),
      refusals,
      endedAt,
      content: body.length > 0 ? { body } : { outcome: storedOutcome(endedAt, parts) },
      token,
    },
  };
}

function storedOutcome(endedAt: number, parts: Buffer[]): Outcome {
  const [state, items, streamed, runTimeMs, status, result, error] = parts as [
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
  });
}
