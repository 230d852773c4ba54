// Contract 6, `/metrics` of the dispatcher: what waits, read when asked and the same at every dispatcher.
import { Gauge, type Registry } from '@inference-proxy/platform';

/** What is read from Redis. */
export interface DeliveryDepths {
  /** How long the oldest job has waited for a dispatcher, milliseconds. */
  backlogMs(): Promise<number>;
  /** How many jobs there are by state. */
  counts(): Promise<Readonly<Record<string, number>>>;
  /** Circuits that are open and deliveries that are parked. */
  receivers(): Promise<{ readonly openCircuits: number; readonly parked: number }>;
}

/** Redis away: the gauge has no value, and the scrape its others. */
export function gaugeDepths(registry: Registry, depths: DeliveryDepths): void {
  const registers = [registry];
  new Gauge({
    name: 'inference_proxy_delivery_backlog_age_seconds',
    help: 'How long the oldest delivery that is due has waited for a dispatcher, over all dispatchers',
    registers,
    async collect() {
      this.reset();
      this.set((await depths.backlogMs().catch(() => Number.NaN)) / 1000);
    },
  });
  new Gauge({
    name: 'inference_proxy_delivery_jobs',
    help: 'Jobs of the deliveries queue by state, over all dispatchers',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset();
      const counts = await depths.counts().catch(() => ({}));
      for (const [state, count] of Object.entries(counts)) this.set({ state }, count);
    },
  });
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
    'Receivers, per project, that are only probed because they fail',
    'openCircuits',
  );
  receivers(
    'inference_proxy_parked_deliveries',
    'Deliveries that wait for a slot or a probe of their receiver',
    'parked',
  );
}
