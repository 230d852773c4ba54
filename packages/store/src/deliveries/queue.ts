// The queue of deliveries (design: a delivery lives for seconds to days and needs delays and retries, which is BullMQ's work). Jobs carry ids
// only, and are no more than wake-ups: what is due is in the project's `due` set, what was made in the delivery's record.
import { randomBytes } from 'node:crypto';
import type { DeliveryJob, DueDelivery, RunId } from '@inference-proxy/contracts';
import { isNotConnectionError, Queue, type QueueOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import { StoreClock } from '../runs/store-clock.ts';
import { withinLimit } from '../time-limit.ts';
import { defaultTimings, type StoreLogger } from '../timings.ts';

export const deliveryQueueName = 'deliveries';

/** Where jobs go that have waited long: fresh ones are not kept waiting by them. */
export const backlogQueueName = 'deliveries-backlog';

/** What the queues' producers and their workers share. The braces make it one slot of a Redis Cluster. */
export const deliveryQueueOptions = {
  prefix: '{ip}',
  defaultJobOptions: {
    // The delivery's own record decides what is delivered, so finished jobs are kept only to be looked at.
    removeOnComplete: { count: 200 },
    removeOnFail: { count: 1000 },
    // A job is one attempt: the next one is a job of its own, with the delay of the schedule.
    attempts: 1,
  },
  // Nobody reads BullMQ's events.
  streams: { events: { maxLen: 100 } },
} satisfies Partial<QueueOptions>;

/** Deliveries of one job at most: a job costs about 250 µs of Redis however many it carries, and is taken by one dispatcher. */
const MOST_OF_A_JOB = 32;

/** For so long the store's time is known by this machine's monotonic clock. */
const CLOCK_KEPT_MS = 10_000;

/** Whether an error that BullMQ tells is the queue's. One of its connection comes with every attempt to connect, and who made the connection has told of it once. */
export const isOfTheQueue = (error: Error): boolean => isNotConnectionError(error) && !('syscall' in error);

/** Adds deliveries; those of one tick that are due at the same time share jobs. */
export class DeliveryQueue {
  private readonly queue: Queue<DeliveryJob>;
  private readonly backlog: Queue<DeliveryJob>;
  private waiting = new Map<number, DueDelivery[]>();
  private flushing: Promise<void> | undefined;
  private readonly clock = new StoreClock();
  private toldAt = Number.NEGATIVE_INFINITY;

  /** @param redis a connection of its own or shared; closed by whoever made it */
  constructor(
    private readonly redis: Redis,
    private readonly logger: StoreLogger,
  ) {
    const options = { ...deliveryQueueOptions, connection: redis, skipVersionCheck: true, skipMetasUpdate: true };
    this.queue = new Queue(deliveryQueueName, options);
    this.backlog = new Queue(backlogQueueName, options);
    for (const queue of [this.queue, this.backlog])
      queue.on('error', (error) => {
        if (isOfTheQueue(error)) this.logger.warn({ err: error }, 'the deliveries queue has failed');
      });
  }

  /** Rejects when Redis does: the `due` index hands the delivery out again. */
  async add(due: DueDelivery, delayMs: number): Promise<void> {
    const same = this.waiting.get(delayMs);
    if (same) same.push(due);
    else this.waiting.set(delayMs, [due]);
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

  /**
   * The store's time now, Unix ms. What one machine writes into a job another reads: with clocks of their own that are an hour apart, a
   * fresh job would be a backlog to the other, or one that has come from the future.
   */
  async now(): Promise<number> {
    if (performance.now() - this.toldAt > CLOCK_KEPT_MS) {
      const [seconds, micros] = await this.redis.time();
      this.clock.set(Number(seconds) * 1000 + Number(micros) / 1000);
      this.toldAt = performance.now();
    }
    return this.clock.now();
  }

  /** Puts a job aside that has waited since `since` (Unix ms) already. */
  async yield(job: DeliveryJob, since: number): Promise<void> {
    await this.backlog.add('deliver', job, { jobId: jobId(job), timestamp: since });
  }

  /** How long the oldest job has waited for a dispatcher, milliseconds; 0 when none waits. Rejects within the time limit of a command. */
  backlogMs(): Promise<number> {
    return withinLimit(this.readBacklogMs(), defaultTimings.commandMs);
  }

  /** For metrics: how many jobs there are by state, in both queues together. Rejects within the time limit of a command. */
  counts(): Promise<Readonly<Record<string, number>>> {
    return withinLimit(this.readCounts(), defaultTimings.commandMs);
  }

  async close(): Promise<void> {
    await Promise.all([this.queue.close(), this.backlog.close()]);
  }

  private async readBacklogMs(): Promise<number> {
    // Only a running dispatcher moves due jobs from `delayed` to `waiting`. BullMQ sets `delay` to 0 then and keeps `opts.delay`.
    const oldest = await Promise.all(
      [this.queue, this.backlog].flatMap((queue) =>
        (['waiting', 'delayed'] as const).map((state) => queue.getJobs([state], 0, 0, true)),
      ),
    );
    const now = await this.now();
    return Math.max(0, ...oldest.flat().map(({ timestamp, opts }) => now - timestamp - (opts.delay ?? 0)));
  }

  private async readCounts(): Promise<Readonly<Record<string, number>>> {
    const states = ['waiting', 'active', 'delayed', 'failed'] as const;
    const [fresh, backlog] = await Promise.all(
      [this.queue, this.backlog].map((queue) => queue.getJobCounts(...states)),
    );
    return Object.fromEntries(states.map((state) => [state, (fresh?.[state] ?? 0) + (backlog?.[state] ?? 0)]));
  }

  private async flush(): Promise<void> {
    const batches = this.waiting;
    this.waiting = new Map();
    this.flushing = undefined;
    const timestamp = await this.now();
    const jobs: { name: string; data: DeliveryJob; opts: { jobId: string; delay: number; timestamp: number } }[] = [];
    for (const [delay, all] of batches) {
      for (let from = 0; from < all.length; from += MOST_OF_A_JOB) {
        const data = { deliveries: all.slice(from, from + MOST_OF_A_JOB) };
        jobs.push({ name: 'deliver', data, opts: { jobId: jobId(data), delay, timestamp } });
      }
    }
    const [only] = jobs;
    // The usual case, without the pipeline that several need.
    if (only && jobs.length === 1) await this.queue.add(only.name, only.data, only.opts);
    else await this.queue.addBulk(jobs);
  }
}

/** BullMQ ignores the id of a job that it still keeps, finished ones too: every hand-over has an id of its own. */
function jobId({ deliveries: [first] }: DeliveryJob): string {
  return `${first?.runId}-${first?.attempt}-${randomBytes(4).toString('hex')}`;
}
