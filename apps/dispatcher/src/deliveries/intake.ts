// Contract 4: gives a place to each due delivery, from the queues or woken by a freed slot, and begins its attempt.
import type { DueDelivery } from '@inference-proxy/contracts';
import type { HostStore, Slot } from '@inference-proxy/store';
import type { HostLimits } from '../fairness/host-limits.ts';
import type { Deliver, DeliveryLog, Woken } from './deliver.ts';
import type { Places, Share } from './places.ts';
import type { NextJobs } from './records.ts';

export interface IntakeOptions {
  readonly deliver: Pick<Deliver, 'deliver'>;
  readonly places: Places;
  readonly hosts: Pick<HostLimits, 'join'>;
  /** Gets the deliveries that a stopping process does not begin. */
  readonly queue: NextJobs;
  /** Gets the slots that a stopping process does not use. */
  readonly slots: Pick<HostStore, 'drop'>;
  readonly log: DeliveryLog;
}

export class Intake {
  readonly #options: IntakeOptions;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Begins the attempts of a job as places become free. Resolves when all have begun, or are back in the queue because this process stops. */
  async take(deliveries: readonly DueDelivery[], share: Share): Promise<void> {
    // All deliveries ask at once, so a delivery of one project does not wait for the place of another project's delivery.
    await Promise.all(deliveries.map((due) => this.#begin(due, share)));
  }

  /** Begins woken deliveries, each with its slot. */
  readonly woken = (slots: readonly Slot[]): void => {
    for (const slot of slots) {
      const turn = this.#options.hosts.join(slot.project, slot.host);
      void this.#begin(slot, 'fresh', { slot, turn });
    }
  };

  /** Hands a delivery out again. */
  readonly again = (due: DueDelivery): void => {
    void this.#begin(due, 'fresh');
  };

  /** Stops the intake. Resolves when the attempts under way have ended. */
  stop(): Promise<void> {
    this.#options.places.close();
    return this.#options.places.empty();
  }

  async #begin(due: DueDelivery, share: Share, woken?: Woken): Promise<void> {
    const leave = await this.#options.places.take(share, due.project);
    if (leave) {
      void this.#attempt(due, woken).finally(leave);
      return;
    }
    woken?.turn.end();
    if (woken) await this.#drop(woken.slot);
    await this.#putBack(due);
  }

  async #attempt(due: DueDelivery, woken: Woken | undefined): Promise<void> {
    const { project, runId, attempt } = due;
    try {
      await this.#options.deliver.deliver({ project, runId, attempt }, woken);
    } catch (err) {
      this.#options.log.error(
        { project, runId, attempt, err },
        'no attempt was made; the store hands the delivery out again',
      );
    }
  }

  /** Releases an unused slot. Without the release, the slot would count in its project's share until its lease expires. */
  async #drop(slot: Slot): Promise<void> {
    try {
      await this.#options.slots.drop(slot);
    } catch (err) {
      this.#options.log.debug({ runId: slot.runId, err }, 'a slot was not released; its lease will expire');
    }
  }

  async #putBack({ project, runId, attempt }: DueDelivery): Promise<void> {
    try {
      await this.#options.queue.add({ project, runId, attempt }, 0);
    } catch (err) {
      this.#options.log.warn(
        { project, runId, err },
        'a delivery was not returned to the queue; the store hands it out when it is overdue',
      );
    }
  }
}
