// Contract 4: one run's delivery, its attempts and its bytes. The record here, not BullMQ's, decides whether a repeat is already delivered.
import { randomBytes } from 'node:crypto';
import { type DeliveryJob, envelope, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { readItems } from '../runs/items.ts';
import { readRecord } from '../runs/record.ts';
import { runScript } from '../scripts.ts';
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
  /** The envelope, where it was made before. */
  readonly body?: Buffer;
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

/** What follows from an attempt. `at` is Unix ms. */
export type NextStep = { readonly state: 'delivered' | 'failed' } | { readonly state: 'pending'; readonly at: number };

export class DeliveryStore {
  constructor(
    private readonly redis: Redis,
    private readonly timings: StoreTimings,
  ) {}

  /** Begins the attempt that a job stands for, under a lease of `leaseMs`; one at a time. */
  async begin(job: DeliveryJob, leaseMs: number): Promise<Begun> {
    const token = randomBytes(8).toString('hex');
    const args = [job.runId, job.attempt, token, leaseMs];
    const reply = (await this.call('delivery-begin', job.project, args)) as [Buffer, Buffer, Buffer, number, Buffer];
    const state = reply[0].toString() as Begun['state'];
    if (state !== 'begun') return { state };
    const [, url, secret, endedAt, body] = reply;
    const task: DeliveryTask = {
      project: job.project,
      runId: job.runId,
      attempt: job.attempt,
      deliveryId: `msg_${job.runId.replaceAll('-', '')}`,
      url: url.toString(),
      ...(secret.length > 0 && { secret: secret.toString() }),
      endedAt,
      ...(body.length > 0 && { body }),
      token,
    };
    return { state, task };
  }

  /** The envelope's bytes: made from the run once and kept until the delivery is settled, so that every attempt sends the same. */
  async body(task: DeliveryTask): Promise<Buffer> {
    if (task.body) return task.body;
    const { project, runId } = task;
    const record = await withinLimit(readRecord(this.redis, project, runId), this.timings.commandMs);
    if (!record?.outcome) throw new ServiceError('internal', 'The run of a due delivery has no outcome.', { runId });
    const items =
      record.outcome.streamed && !record.outcome.error
        ? await readItems(this.redis, project, runId, this.timings.commandMs)
        : [];
    const bytes = envelope(runId, record.outcome, items);
    const key = projectPrefix(project) + names.run + runId;
    await withinLimit(this.redis.hset(key, 'envelope', bytes), this.timings.commandMs);
    return bytes;
  }

  /** Records an attempt before anything follows from it. `superseded`: its lease ran out and another attempt began. */
  async record(task: DeliveryTask, attempt: AttemptRecord, next: NextStep): Promise<'recorded' | 'superseded'> {
    const at = next.state === 'pending' ? next.at : '';
    const text = JSON.stringify({ attempt: task.attempt, ...attempt, next: next.state });
    const args = [task.runId, task.attempt, task.token, text, next.state, at, this.timings.handoverMs];
    return (await this.call('delivery-record', task.project, args)) === 1 ? 'recorded' : 'superseded';
  }

  private call(
    name: 'delivery-begin' | 'delivery-record',
    project: string,
    args: (string | number)[],
  ): Promise<unknown> {
    return withinLimit(runScript(this.redis, name, project, args), this.timings.commandMs);
  }
}
