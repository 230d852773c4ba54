// docs/architecture.md, "A webhook": what is due comes in here, from the queues or woken by a freed slot, and each gets a place for its attempt.
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
  /** Where a delivery goes that is not begun here any more. */
  readonly queue: NextJobs;
  /** Takes back slots that came to a process that stops. */
  readonly slots: Pick<HostStore, 'drop'>;
  readonly log: DeliveryLog;
}

export class Intake {
  constructor(private readonly options: IntakeOptions) {}

  /** Begins the attempts of a job as places become free; resolves when all have begun, or were put back because this process stops. */
  async take(deliveries: readonly DueDelivery[], share: Share): Promise<void> {
    // All at once: a delivery of another project does not wait for the place of the one before it.
    await Promise.all(deliveries.map((due) => this.#begin(due, share)));
  }

  /** Deliveries that were parked and have their slot now. */
  readonly woken = (slots: readonly Slot[]): void => {
    for (const slot of slots) {
      const turn = this.options.hosts.join(slot.project, slot.host);
      void this.#begin(slot, 'fresh', { slot, turn });
    }
  };

  /** Hands a delivery out again. */
  readonly again = (due: DueDelivery): void => {
    void this.#begin(due, 'fresh');
  };

  /** Begins nothing more; resolves when the attempts under way have ended. */
  stop(): Promise<void> {
    this.options.places.close();
    return this.options.places.empty();
  }

  async #begin(due: DueDelivery, share: Share, woken?: Woken): Promise<void> {
    const leave = await this.options.places.take(share, due.project);
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
      await this.options.deliver.deliver({ project, runId, attempt }, woken);
    } catch (err) {
      this.options.log.error({ project, runId, attempt, err }, 'no attempt was made; the store hands it out again');
    }
  }

  /** A slot that nobody drops takes part of its project's share until its lease ends. */
  async #drop(slot: Slot): Promise<void> {
    try {
      await this.options.slots.drop(slot);
    } catch (err) {
      this.options.log.debug({ runId: slot.runId, err }, 'a slot was not given back; its lease will end');
    }
  }

  async #putBack({ project, runId, attempt }: DueDelivery): Promise<void> {
    try {
      await this.options.queue.add({ project, runId, attempt }, 0);
    } catch (err) {
      this.options.log.warn(
        { project, runId, err },
        'a delivery was not put back; the store hands it out when it is overdue',
      );
    }
  }
}
