// The deliveries queue's other end (design.md: deliveries go through BullMQ): takes jobs, hands each to the journey, gives back what it said.
import { deliveryJobSchema } from '@inference-proxy/contracts';
import { deliveryQueueName, deliveryQueueOptions } from '@inference-proxy/store';
import { type ConnectionOptions, UnrecoverableError, Worker } from 'bullmq';
import type { Deliver, DeliveryLog } from './deliver.ts';

export interface DeliveryWorkerOptions {
  /** A connection that waits while Redis is away; BullMQ makes a second one of it to block on. */
  readonly connection: ConnectionOptions;
  /** Attempts under way at once. A waiting attempt costs a socket and a timer, so many: receivers must not wait for each other. */
  readonly concurrency: number;
  readonly log: DeliveryLog;
}

/** Takes jobs from its start to `stop`. */
export class DeliveryWorker {
  readonly #worker: Worker;
  #stopped: Promise<void> | undefined;

  constructor(deliver: Deliver, { connection, concurrency, log }: DeliveryWorkerOptions) {
    this.#worker = new Worker(
      deliveryQueueName,
      async ({ id, data }) => {
        const job = deliveryJobSchema.safeParse(data);
        if (!job.success) throw new UnrecoverableError(`job ${id} is no delivery job: ${job.error.message}`);
        return deliver.deliver(job.data);
      },
      {
        ...deliveryQueueOptions,
        connection,
        concurrency,
        autorun: false,
        // Longer than an attempt's lease: a job that is taken for stalled is repeated, and must then find that lease run out.
        lockDuration: deliver.leaseMs * 2,
        // How soon a killed dispatcher's jobs are looked for; the store's `due` index hands their deliveries out anyway.
        stalledInterval: 30_000,
        // A repeat is harmless, since the record decides: so a job outlives a few dispatchers before it is left to `due`.
        maxStalledCount: 5,
      },
    );
    this.#worker.on('error', (err) => log.warn({ err }, 'the deliveries queue has lost Redis'));
    this.#worker.on('failed', (job, err) =>
      log.error({ job: job?.id, err }, 'no attempt was made; the store hands it out again'),
    );
  }

  /** Begins to take jobs. */
  start(): void {
    // Ends when the worker is closed; what goes wrong meanwhile is told by 'error'.
    this.#worker.run().catch(() => {});
  }

  /** Takes no more jobs; resolves when the attempts under way have ended. Stopping twice is safe. */
  stop(): Promise<void> {
    this.#stopped ??= this.#worker.close();
    return this.#stopped;
  }
}
