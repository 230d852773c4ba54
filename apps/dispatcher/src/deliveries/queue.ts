// The queues' other end (docs/decisions/0015). A job is a wake-up: it is done when its deliveries have places. Killed
// after that, they are in the store's `due` set, with the ends of their leases.
import { type DeliveryJob, deliveryJobSchema } from '@inference-proxy/contracts';
import {
  backlogQueueName,
  type DeliveryQueue,
  deliveryQueueName,
  deliveryQueueOptions,
  isOfTheQueue,
} from '@inference-proxy/store';
import { type ConnectionOptions, type Job, UnrecoverableError, Worker } from 'bullmq';
import type { DeliveryLog } from './deliver.ts';
import type { Intake } from './intake.ts';

/** A job that was not taken for so long is of a backlog: it goes aside, and what is fresh comes first. */
const STALE_MS = 10_000;
/** Jobs that wait for places at once. More would only be held here and not by another dispatcher. */
const JOBS_AT_ONCE = 4;

export interface DeliveryWorkerOptions {
  /** Connections that wait while Redis is away, one per queue; BullMQ makes a second one of each to block on. */
  readonly connections: { readonly fresh: ConnectionOptions; readonly backlog: ConnectionOptions };
  readonly intake: Intake;
  readonly queue: Pick<DeliveryQueue, 'yield' | 'now'>;
  readonly log: DeliveryLog;
}

/** Takes jobs from its start to `stop`. */
export class DeliveryWorker {
  readonly #options: DeliveryWorkerOptions;
  readonly #workers: readonly Worker[];
  #stopped: Promise<void> | undefined;

  constructor(options: DeliveryWorkerOptions) {
    this.#options = options;
    const { connections, intake } = options;
    this.#workers = [
      this.#worker(deliveryQueueName, connections.fresh, (job, data) => this.#fresh(job, data)),
      this.#worker(backlogQueueName, connections.backlog, (_, { deliveries }) => intake.take(deliveries, 'backlog')),
    ];
  }

  /** Begins to take jobs. */
  start(): void {
    // Ends when the worker is closed; what goes wrong meanwhile is told by 'error'.
    for (const worker of this.#workers) worker.run().catch(() => {});
  }

  /** Takes no more jobs; resolves when the attempts under way have ended. Stopping twice is safe. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const empty = this.#options.intake.stop();
    await Promise.all([...this.#workers.map((worker) => worker.close()), empty]);
  }

  async #fresh(job: Job, data: DeliveryJob): Promise<void> {
    const dueAt = job.timestamp + (job.opts.delay ?? 0);
    const { queue, intake } = this.#options;
    if ((await queue.now()) - dueAt > STALE_MS) await queue.yield(data, dueAt);
    else await intake.take(data.deliveries, 'fresh');
  }

  #worker(name: string, connection: ConnectionOptions, handle: (job: Job, data: DeliveryJob) => Promise<void>): Worker {
    const { log } = this.#options;
    const worker = new Worker(
      name,
      async (job) => {
        const data = deliveryJobSchema.safeParse(job.data);
        if (!data.success) throw new UnrecoverableError(`job ${job.id} is no delivery job: ${data.error.message}`);
        return handle(job, data.data);
      },
      {
        ...deliveryQueueOptions,
        connection,
        concurrency: JOBS_AT_ONCE,
        autorun: false,
        // How soon a killed dispatcher's jobs are looked for; the store's `due` set hands their deliveries out anyway.
        lockDuration: 30_000,
        stalledInterval: 30_000,
        // A repeat is harmless, since the record decides: so a job outlives a few dispatchers before it is left to `due`.
        maxStalledCount: 5,
      },
    );
    worker.on('error', (err) => {
      if (isOfTheQueue(err)) log.warn({ err }, 'the deliveries queue has failed');
    });
    worker.on('failed', (job, err) =>
      log.error({ job: job?.id, err }, 'a job came to nothing; the store hands it out again'),
    );
    return worker;
  }
}
