// The queue of deliveries (design: a delivery lives for seconds to days and needs delays and retries, which is BullMQ's work). Jobs carry ids only.
import { randomBytes } from 'node:crypto';
import type { DeliveryJob, RunId } from '@inference-proxy/contracts';
import { type JobsOptions, Queue, type QueueOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import type { StoreLogger } from '../timings.ts';

export const deliveryQueueName = 'deliveries';

/** What the queue's producers and its worker share. The braces make it one slot of a Redis Cluster. */
export const deliveryQueueOptions = {
  prefix: '{ip}',
  defaultJobOptions: {
    // The delivery's own record decides what is delivered, so finished jobs are kept only to be looked at.
    removeOnComplete: { count: 1000 },
    removeOnFail: { count: 1000 },
    // A job is one attempt: the next one is a job of its own, with the delay of the schedule.
    attempts: 1,
  },
} satisfies Partial<QueueOptions>;

interface NewJob {
  readonly job: DeliveryJob;
  readonly delayMs: number;
}

/** Adds deliveries; many of one tick go in one call. */
export class DeliveryQueue {
  private readonly queue: Queue<DeliveryJob>;
  private waiting: NewJob[] = [];
  private flushing: Promise<void> | undefined;

  /** @param redis a connection of its own or shared; closed by whoever made it */
  constructor(
    redis: Redis,
    private readonly logger: StoreLogger,
  ) {
    this.queue = new Queue(deliveryQueueName, { ...deliveryQueueOptions, connection: redis, skipVersionCheck: true });
    this.queue.on('error', (error) => this.logger.warn({ err: error }, 'the deliveries queue has lost Redis'));
  }

  /** Rejects when Redis does: the `due` index hands the delivery out again. */
  async add(job: DeliveryJob, delayMs: number): Promise<void> {
    this.waiting.push({ job, delayMs });
    this.flushing ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.flush());
    await this.flushing;
  }

  /** The first attempts of runs that have just ended. Never rejects: what is lost here is handed out again by reap. */
  handOver(project: string, runIds: readonly RunId[]): void {
    for (const runId of runIds) {
      this.add({ project, runId, attempt: 1 }, 0).catch((error: unknown) => {
        this.logger.warn({ err: error, runId }, 'a due delivery was not handed over; reap hands it out again');
      });
    }
  }

  /** How long the oldest job has waited for a dispatcher, milliseconds; 0 when none waits. */
  async backlogMs(): Promise<number> {
    const [oldest] = await this.queue.getJobs(['waiting'], 0, 0, true);
    return oldest ? Date.now() - oldest.timestamp : 0;
  }

  close(): Promise<void> {
    return this.queue.close();
  }

  private async flush(): Promise<void> {
    const jobs = this.waiting;
    this.waiting = [];
    this.flushing = undefined;
    await this.queue.addBulk(
      jobs.map(({ job, delayMs }) => ({ name: 'deliver', data: job, opts: jobOptions(job, delayMs) })),
    );
  }
}

/** BullMQ ignores the id of a job that it still keeps, finished ones too: every hand-over has an id of its own. */
function jobOptions(job: DeliveryJob, delayMs: number): JobsOptions {
  return { jobId: `${job.runId}-${job.attempt}-${randomBytes(4).toString('hex')}`, delay: delayMs };
}
