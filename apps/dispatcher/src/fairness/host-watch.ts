// Contract 4, "Isolation": looks twice a second for due probes and expired slots. The look reads no deliveries.
import type { DueDelivery } from '@inference-proxy/contracts';
import type { HostStore } from '@inference-proxy/store';

const EVERY_MS = 500;

export interface HostWatchOptions {
  readonly hosts: Pick<HostStore, 'checkReceivers'>;
  /** Starts the attempt of a delivery whose slot has expired. */
  readonly startExpired: (due: DueDelivery) => void;
  readonly log: { warn(fields: object, text: string): void };
}

/** Looks every 500 ms, from `start` to `stop`. */
export class HostWatch {
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  readonly #options: HostWatchOptions;

  constructor(options: HostWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#look(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      for (const due of await this.#options.hosts.checkReceivers()) this.#options.startExpired(due);
    } catch (err) {
      this.#options.log.warn(
        { err },
        'the look for due probes and expired slots failed; the next look follows within a second',
      );
    } finally {
      this.#looking = false;
    }
  }
}
