// webhooks.md "Isolation": twice a second somebody looks whether a probe is due and whose slots have lapsed. Deliveries are not looked at.
import type { DueDelivery } from '@inference-proxy/contracts';
import type { HostStore } from '@inference-proxy/store';

const EVERY_MS = 500;

export interface HostWatchOptions {
  readonly hosts: Pick<HostStore, 'look'>;
  /** Deliveries of slots that have lapsed are handed out again. */
  readonly handOut: (due: DueDelivery) => void;
  readonly log: { warn(fields: object, text: string): void };
}

/** Looks from its start to `stop`. */
export class HostWatch {
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  constructor(private readonly options: HostWatchOptions) {}

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
      for (const due of await this.options.hosts.look()) this.options.handOut(due);
    } catch (err) {
      this.options.log.warn({ err }, 'receivers were not looked at; tried again in a moment');
    } finally {
      this.#looking = false;
    }
  }
}
