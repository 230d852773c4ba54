// Contract 4: the queue of deliveries. A delivery lives for seconds to days and needs delays and retries, and BullMQ has both. Jobs carry only
// ids, and are only wake-ups: the project's `due` set holds the due deliveries, and the delivery's record holds the attempts.
import { randomBytes } from 'node:crypto';
import type { DeliveryJob, DueDelivery, RunId } from '@inference-proxy/contracts';
import { isNotConnectionError, Queue, type QueueOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import { StoreClock, withinLimit } from '../redis.ts';
import { defaultTimings, type StoreLogger } from '../timings.ts';

export const deliveryQueueName = 'deliveries';

/** Queue for jobs that have waited long, so that new jobs do not wait behind them. */
export const backlogQueueName = 'deliveries-backlog';

/** Options of the queues' producers and workers. The braces make the queues one slot of a Redis Cluster. */
export const deliveryQueueOptions = {
  prefix: '{ip}',
  defaultJobOptions: {
    // The delivery's record decides whether a delivery is done, so finished jobs are kept only for inspection.
    removeOnComplete: { count: 200 },
    removeOnFail: { count: 1000 },
    // A job is one attempt. The next attempt is a separate job, with the delay of the schedule.
    attempts: 1,
  },
  // BullMQ's events have no reader.
  streams: { events: { maxLen: 100 } },
} satisfies Partial<QueueOptions>;

/** Maximum number of deliveries in one job. A job costs about 250 µs of Redis for any number of deliveries, and one dispatcher takes it. */
const MOST_OF_A_JOB = 32;

/** Time for which this machine's monotonic clock continues the store's time. */
const CLOCK_KEPT_MS = 10_000;

/**
 * Returns whether an error from BullMQ belongs to the queue. An error of its connection comes with every connection attempt, and the owner of
 * the connection has logged it once.
 */
export const isOfTheQueue = (error: Error): boolean => isNotConnectionError(error) && !('syscall' in error);

/** Adds deliveries. Deliveries of one tick with the same delay share jobs. */
export class DeliveryQueue {
  readonly #queue: Queue<DeliveryJob>;
  readonly #backlog: Queue<DeliveryJob>;
  #waiting = new Map<number, DueDelivery[]>();
  #flushing: Promise<void> | undefined;
  readonly #clock = new StoreClock();
  #readAt = Number.NEGATIVE_INFINITY;

  readonly #redis: Redis;
  readonly #logger: StoreLogger;

  /** @param redis a separate or shared connection. Its owner closes it. */
  constructor(redis: Redis, logger: StoreLogger) {
    this.#redis = redis;
    this.#logger = logger;

    const options = { ...deliveryQueueOptions, connection: redis, skipVersionCheck: true, skipMetasUpdate: true };
    this.#queue = new Queue(deliveryQueueName, options);
    this.#backlog = new Queue(backlogQueueName, options);
    for (const queue of [this.#queue, this.#backlog])
      queue.on('error', (error) => {
        if (isOfTheQueue(error))
          this.#logger.warn(
            { err: error },
            'a command of the deliveries queue failed; overdue deliveries are handed out again',
          );
      });
  }

  /** Rejects if Redis does. In this case the `due` index hands the delivery over again. */
  async add(due: DueDelivery, delayMs: number): Promise<void> {
    const same = this.#waiting.get(delayMs);
    if (same) same.push(due);
    else this.#waiting.set(delayMs, [due]);
    this.#flushing ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#flush());
    await this.#flushing;
  }

  /** Adds the first attempts of runs that have just ended. Never rejects, because reap hands lost deliveries over again. */
  handOver(project: string, runIds: readonly RunId[]): void {
    for (const runId of runIds) {
      this.add({ project, runId, attempt: 1 }, 0).catch((error: unknown) => {
        this.#logger.warn({ err: error, runId }, 'a due delivery was not added to the queue; reap hands it over again');
      });
    }
  }

  /**
   * Returns the store's time now, Unix ms. Machines read each other's times. If their clocks differed by an hour, a new
   * job would look like a backlog, or like a job from the future.
   */
  async now(): Promise<number> {
    if (performance.now() - this.#readAt > CLOCK_KEPT_MS) {
      await this.#clock.read(this.#redis);
      this.#readAt = performance.now();
    }
    return this.#clock.now();
  }

  /** Moves a job to the backlog queue. The job has waited since `since` (Unix ms). */
  async yield(job: DeliveryJob, since: number): Promise<void> {
    await this.#backlog.add('deliver', job, { jobId: jobId(job), timestamp: since });
  }

  /** Returns the time for which the oldest job has waited for a dispatcher, ms; 0 without waiting jobs. Rejects at the time limit of a command. */
  backlogMs(): Promise<number> {
    return withinLimit(this.#readBacklogMs(), defaultTimings.commandMs);
  }

  /** Returns the number of jobs by state, in both queues together, for metrics. Rejects at the time limit of a command. */
  counts(): Promise<Readonly<Record<string, number>>> {
    return withinLimit(this.#readCounts(), defaultTimings.commandMs);
  }

  async close(): Promise<void> {
    await Promise.all([this.#queue.close(), this.#backlog.close()]);
  }

  async #readBacklogMs(): Promise<number> {
    // Only a running dispatcher moves due jobs from `delayed` to `waiting`. BullMQ then sets `delay` to 0 and keeps `opts.delay`.
    const oldest = await Promise.all(
      [this.#queue, this.#backlog].flatMap((queue) =>
        (['waiting', 'delayed'] as const).map((state) => queue.getJobs([state], 0, 0, true)),
      ),
    );
    const now = await this.now();
    return Math.max(0, ...oldest.flat().map(({ timestamp, opts }) => now - timestamp - (opts.delay ?? 0)));
  }

  async #readCounts(): Promise<Readonly<Record<string, number>>> {
    const states = ['waiting', 'active', 'delayed', 'failed'] as const;
    const [fresh, backlog] = await Promise.all(
      [this.#queue, this.#backlog].map((queue) => queue.getJobCounts(...states)),
    );
    return Object.fromEntries(states.map((state) => [state, (fresh?.[state] ?? 0) + (backlog?.[state] ?? 0)]));
  }

  async #flush(): Promise<void> {
    const batches = this.#waiting;
    this.#waiting = new Map();
    this.#flushing = undefined;
    const timestamp = await this.now();
    const jobs: { name: string; data: DeliveryJob; opts: { jobId: string; delay: number; timestamp: number } }[] = [];
    for (const [delay, all] of batches) {
      for (let from = 0; from < all.length; from += MOST_OF_A_JOB) {
        const data = { deliveries: all.slice(from, from + MOST_OF_A_JOB) };
        jobs.push({ name: 'deliver', data, opts: { jobId: jobId(data), delay, timestamp } });
      }
    }
    const [only] = jobs;
    // The usual case is one job, which needs no pipeline.
    if (only && jobs.length === 1) await this.#queue.add(only.name, only.data, only.opts);
    else await this.#queue.addBulk(jobs);
  }
}

/** Returns a unique id for each hand-over, because BullMQ ignores an id that it still keeps, even of a finished job. */
function jobId({ deliveries: [first] }: DeliveryJob): string {
  return `${first?.runId}-${first?.attempt}-${randomBytes(4).toString('hex')}`;
}
