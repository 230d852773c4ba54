// Contract 6, `/metrics`: deliveries that wait for a dispatcher. Gateways export these metrics too, because a stopped dispatcher exports nothing.
import { Gauge, type Registry } from 'prom-client';

/** The figures that are read from Redis. */
export interface DeliveryBacklog {
  /** Returns the milliseconds for which the oldest job has waited for a dispatcher. */
  backlogMs(): Promise<number>;
  /** Returns the number of jobs in each state. */
  counts(): Promise<Readonly<Record<string, number>>>;
}

/** Registers both metrics. While Redis is away, the age is NaN and the job counts have no value; other metrics of the scrape are complete. */
export function gaugeBacklog(registry: Registry, backlog: DeliveryBacklog): void {
  const registers = [registry];
  new Gauge({
    name: 'inference_proxy_delivery_backlog_age_seconds',
    help: 'Waiting time of the oldest due delivery for a dispatcher, over all dispatchers',
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
