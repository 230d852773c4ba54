// Contract 6, `/metrics` of the dispatcher: what waits, read when asked and the same at every dispatcher.
import { type DeliveryBacklog, Gauge, gaugeBacklog, type Registry } from '@inference-proxy/platform';

/** What is read from Redis. */
export interface DeliveryDepths extends DeliveryBacklog {
  /** Circuits that are open and deliveries that are parked. */
  receivers(): Promise<{ readonly openCircuits: number; readonly parked: number }>;
}

/** Redis away: the gauge has no value, and the scrape its others. */
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
