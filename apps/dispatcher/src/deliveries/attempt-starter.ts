// Contract 4: gives a place to each due delivery and starts its attempt. Due deliveries come from the queues, or are woken by a freed slot.
import type { DueDelivery } from '@inference-proxy/contracts';
import type { DeliveryQueue, Slot } from '@inference-proxy/store';
import type { Permit, Permits } from '../fairness/permits.ts';
import type { Places, Share } from '../fairness/places.ts';
import type { Deliver, DeliveryLogger } from './deliver.ts';

export interface AttemptStarterOptions {
  readonly deliver: Pick<Deliver, 'deliver'>;
  readonly places: Places;
  readonly permits: Pick<Permits, 'ofWoken'>;
  /** Gets the deliveries that a stopping process does not start. */
  readonly queue: Pick<DeliveryQueue, 'add'>;
  readonly log: DeliveryLogger;
}

export class AttemptStarter {
  readonly #options: AttemptStarterOptions;

  constructor(options: AttemptStarterOptions) {
    this.#options = options;
  }

  /** Starts the attempts of a job as places become free. Resolves when all have started, or are back in the queue because this process stops. */
  async startJob(deliveries: readonly DueDelivery[], share: Share): Promise<void> {
    // All deliveries ask at once, so a delivery of one project does not wait for the place of another project's delivery.
    await Promise.all(deliveries.map((due) => this.#start(due, share)));
  }

  /** Starts the attempts of woken deliveries, each with its slot. */
  readonly startWoken = (slots: readonly Slot[]): void => {
    for (const slot of slots) void this.#start(slot, 'fresh', this.#options.permits.ofWoken(slot));
  };

  /** Starts the attempt of a delivery whose slot has expired. */
  readonly startExpired = (due: DueDelivery): void => {
    void this.#start(due, 'fresh');
  };

  /** Starts no further attempts. Resolves when the attempts under way have ended. */
  stop(): Promise<void> {
    this.#options.places.close();
    return this.#options.places.empty();
  }

  async #start({ project, runId, attempt }: DueDelivery, share: Share, permit?: Permit): Promise<void> {
    const due = { project, runId, attempt };
    const leave = await this.#options.places.take(share, project);
    if (leave) {
      void this.#attempt(due, permit).finally(leave);
      return;
    }
    await permit?.drop();
    await this.#putBack(due);
  }

  async #attempt(due: DueDelivery, permit: Permit | undefined): Promise<void> {
    try {
      await this.#options.deliver.deliver(due, permit);
    } catch (err) {
      this.#options.log.error({ ...due, err }, 'no attempt was made; the store hands the delivery out again');
    }
  }

  async #putBack(due: DueDelivery): Promise<void> {
    try {
      await this.#options.queue.add(due, 0);
    } catch (err) {
      const { project, runId } = due;
      this.#options.log.warn(
        { project, runId, err },
        'a delivery was not returned to the queue; the store hands it out when it is overdue',
      );
    }
  }
}
