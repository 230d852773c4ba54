// Contract 6, `/metrics`: deliveries that wait for a dispatcher. Gateways export these metrics too, because a stopped dispatcher exports nothing.
import { Gauge, type Registry } from 'prom-client';

/** What is read from Redis. */
export interface DeliveryBacklog {
  /** How long the oldest job has waited for a dispatcher, milliseconds. */
  backlogMs(): Promise<number>;
  /** How many jobs there are by state. */
  counts(): Promise<Readonly<Record<string, number>>>;
}

/** While Redis is away the age is NaN and the jobs have no value. The other metrics of the scrape have theirs. */
export function gaugeBacklog(registry: Registry, backlog: DeliveryBacklog): void {
  const registers = [registry];
  new Gauge({
    name: 'inference_proxy_delivery_backlog_age_seconds',
    help: 'How long the oldest delivery that is due has waited for a dispatcher, over all dispatchers',
    registers,
    async collect() {
      this.reset();
      this.set((await backlog.backlogMs().catch(() => Number.NaN)) / 1000);
    },
  });
  new Gauge({
    name: 'inference_proxy_delivery_jobs',
    help: 'Jobs of the deliveries queue by state, over all dispatchers',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset();
      const counts = await backlog.counts().catch(() => ({}));
      for (const [state, count] of Object.entries(counts)) this.set({ state }, count);
    },
  });
}
