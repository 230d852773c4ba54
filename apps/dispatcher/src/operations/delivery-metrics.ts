// Contract 6: the dispatcher's metrics of deliveries and their attempts.
import { Counter, DURATION_BUCKETS, Gauge, Histogram, type Registry } from '@inference-proxy/platform';
import type { AttemptRecord } from '@inference-proxy/store';

export class DeliveryMetrics {
  readonly #deliveries: Counter<'end'>;
  readonly #attempts: Counter<'class'>;
  readonly #duration: Histogram;
  readonly #lag: Histogram;
  readonly #open: Gauge;
  readonly #parked: Counter<'reason'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#deliveries = new Counter({
      name: 'inference_proxy_deliveries_total',
      help: 'Deliveries that have ended; end is delivered, gone, refused, exhausted or altered',
      labelNames: ['end'],
      registers,
    });
    this.#attempts = new Counter({
      name: 'inference_proxy_delivery_attempts_total',
      help: 'Attempts; class is that of the status, such as 2xx, or of the error, such as dns',
      labelNames: ['class'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'inference_proxy_delivery_attempt_duration_seconds',
      help: 'Time from the start of an attempt to the start of its answer, or to its error',
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.#lag = new Histogram({
      name: 'inference_proxy_delivery_lag_seconds',
      help: 'Time from the end of a run to the first attempt of its delivery',
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.#open = new Gauge({
      name: 'inference_proxy_open_attempts',
      help: 'Attempts under way at this dispatcher',
      registers,
    });
    this.#parked = new Counter({
      name: 'inference_proxy_parkings_total',
      help: 'Attempts that were postponed; reason is project_busy, host_busy or circuit_open',
      labelNames: ['reason'],
      registers,
    });
  }

  /** @param endedAt when the run ended, Unix ms; given for the first attempt only */
  begun(endedAt: number | undefined): void {
    this.#open.inc();
    // `endedAt` is a time of the store's clock. A negative lag is only the difference between the clocks.
    if (endedAt !== undefined) this.#lag.observe(Math.max(0, Date.now() - endedAt) / 1000);
  }

  made(record: AttemptRecord): void {
    this.#open.dec();
    this.#attempts.inc({ class: classOf(record) });
    this.#duration.observe(record.durationMs / 1000);
  }

  /** Ends an attempt that was not made. */
  unmade(): void {
    this.#open.dec();
  }

  /** @param verdict the state of a delivery after an attempt, and the reason of a failed delivery */
  judged({ state, why }: { readonly state: 'delivered' | 'failed' | 'pending'; readonly why?: string }): void {
    if (state !== 'pending') this.#deliveries.inc({ end: why ?? state });
  }

  parked(reason: string): void {
    this.#parked.inc({ reason });
  }
}

const classOf = ({ status, errorClass }: AttemptRecord): string =>
  errorClass ?? (status === undefined ? 'bad_response' : `${Math.floor(status / 100)}xx`);
