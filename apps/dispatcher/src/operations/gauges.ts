// Contract 6: gauges of waiting deliveries and open circuits. Each scrape reads them from Redis, so every dispatcher reports the same values.
import { type DeliveryBacklog, Gauge, gaugeBacklog, type Registry } from '@inference-proxy/platform';

/** The values that are read from Redis. */
export interface DeliveryDepths extends DeliveryBacklog {
  /** Returns the numbers of open circuits and of parked deliveries. */
  receivers(): Promise<{ readonly openCircuits: number; readonly parked: number }>;
}

/** Registers the gauges. While Redis is away they have no value, and the scrape returns the other metrics. */
export function gaugeDepths(registry: Registry, depths: DeliveryDepths): void {
  const registers = [registry];
  gaugeBacklog(registry, depths);
  const receivers = (name: string, help: string, count: 'openCircuits' | 'parked') =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.reset();
        this.set(
          await depths.receivers().then(
            (counts) => counts[count],
            () => Number.NaN,
          ),
        );
      },
    });
  receivers(
    'inference_proxy_open_circuits',
    'Open circuits: receivers of a project that get probes only, because their attempts fail',
    'openCircuits',
  );
  receivers(
    'inference_proxy_parked_deliveries',
    'Deliveries that wait for a slot or a probe of their receiver',
    'parked',
  );
}
