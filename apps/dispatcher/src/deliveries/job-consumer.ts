// Contract 4: takes jobs from the queues (docs/decisions/0015). A job is a wake-up and is done when its deliveries have places.
// If the dispatcher is killed after that, the store's `due` set has the deliveries with the ends of their leases.
import { type DeliveryJob, deliveryJobSchema } from '@inference-proxy/contracts';
import {
  backlogQueueName,
  type DeliveryQueue,
  deliveryQueueName,
  deliveryQueueOptions,
  isOfTheQueue,
} from '@inference-proxy/store';
import { type ConnectionOptions, type Job, UnrecoverableError, Worker } from 'bullmq';
import type { AttemptStarter } from './attempt-starter.ts';
import type { DeliveryLogger } from './deliver.ts';

/** A job that waited longer belongs to a backlog. It moves to the backlog queue, so fresh jobs come first. */
const STALE_MS = 10_000;
/** Jobs that wait for places at once. With more, jobs would wait here although another dispatcher has free places. */
const JOBS_AT_ONCE = 4;

export interface JobConsumerOptions {
  /** One connection for each queue; commands wait while Redis is away. BullMQ duplicates each connection for its blocking commands. */
  readonly connections: { readonly fresh: ConnectionOptions; readonly backlog: ConnectionOptions };
  readonly starter: AttemptStarter;
  readonly queue: Pick<DeliveryQueue, 'yield' | 'now'>;
  readonly log: DeliveryLogger;
}

/** Takes jobs from `start` to `stop`. */
export class JobConsumer {
  readonly #options: JobConsumerOptions;
  readonly #workers: readonly Worker[];
  #stopped: Promise<void> | undefined;

  constructor(options: JobConsumerOptions) {
    this.#options = options;
    const { connections, starter } = options;
    this.#workers = [
      this.#worker(deliveryQueueName, connections.fresh, (job, data) => this.#fresh(job, data)),
      this.#worker(backlogQueueName, connections.backlog, (_, { deliveries }) =>
        starter.startJob(deliveries, 'backlog'),
      ),
    ];
  }

  start(): void {
    // The promise settles when the worker closes. The 'error' event reports failures before that.
    for (const worker of this.#workers) worker.run().catch(() => {});
  }

  /** Stops taking jobs. Resolves when the attempts under way have ended. A second call returns the same promise. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const ended = this.#options.starter.stop();
    await Promise.all([...this.#workers.map((worker) => worker.close()), ended]);
  }

  async #fresh(job: Job, data: DeliveryJob): Promise<void> {
    const dueAt = job.timestamp + (job.opts.delay ?? 0);
    const { queue, starter } = this.#options;
    if ((await queue.now()) - dueAt > STALE_MS) await queue.yield(data, dueAt);
    else await starter.startJob(data.deliveries, 'fresh');
  }

  #worker(name: string, connection: ConnectionOptions, handle: (job: Job, data: DeliveryJob) => Promise<void>): Worker {
    const { log } = this.#options;
    const worker = new Worker(
      name,
      async (job) => {
        const data = deliveryJobSchema.safeParse(job.data);
        if (!data.success) throw new UnrecoverableError(`job ${job.id} is not a delivery job: ${data.error.message}`);
        return handle(job, data.data);
      },
      {
        ...deliveryQueueOptions,
        connection,
        concurrency: JOBS_AT_ONCE,
        autorun: false,
        // Time until BullMQ recovers the jobs of a killed dispatcher. The store's `due` set also hands out their deliveries.
        lockDuration: 30_000,
        stalledInterval: 30_000,
        // A repeat is harmless, because the record decides. So a job may outlive five dispatchers before only `due` has its deliveries.
        maxStalledCount: 5,
      },
    );
    worker.on('error', (err) => {
      if (isOfTheQueue(err))
        log.warn({ err }, 'a command of the deliveries queue failed; overdue deliveries are handed out again');
    });
    worker.on('failed', (job, err) =>
      log.error({ job: job?.id, err }, 'a delivery job failed; the store hands its deliveries out again'),
    );
    return worker;
  }
}
