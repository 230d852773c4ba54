// Contract 6, `/metrics`: the metric types of prom-client, and a registry with the metrics of the process.
import { collectDefaultMetrics, Registry } from 'prom-client';

export { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Upper bounds in seconds, from a call that is only passed through to a run of an hour. */
export const DURATION_BUCKETS: number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
];

/** Returns a registry that already has the metrics of the process: CPU, memory, descriptors, garbage collection, event-loop lag. */
export function openRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
