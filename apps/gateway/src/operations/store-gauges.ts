// Contract 6: the gateway's `/metrics` about the queues and bytes of the run store, read at each scrape. All gateways report the same values.
import { Gauge, type Registry } from '@inference-proxy/platform';
import type { StoreDepths } from '@inference-proxy/store';

/** Several gauges, and several scrapers, share one reading. */
const FRESH_MS = 1000;

/**
 * Returns a function that reads at most once a second. Its value is undefined while the store is unreachable.
 *
 * @param now milliseconds of a monotonic clock
 */
export function seldom<T>(read: () => Promise<T>, now: () => number = () => performance.now()) {
  let readAt = Number.NEGATIVE_INFINITY;
  let last: Promise<T | undefined> = Promise.resolve(undefined);
  return (): Promise<T | undefined> => {
    if (now() - readAt >= FRESH_MS) {
      readAt = now();
      last = read().catch(() => undefined);
    }
    return last;
  };
}

/**
 * Registers the gauges of the store.
 *
 * @param read rejects while the store is unreachable. The gauges then have no values, and the scrape has all other metrics
 */
export function gaugeStore(registry: Registry, read: () => Promise<StoreDepths>): void {
  const depths = seldom(read);
  const gauge = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    fill: (gauge: Gauge<Label>, found: StoreDepths) => void,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const found = await depths();
        this.reset();
        if (found) fill(this, found);
        else if (labelNames.length === 0) this.set(Number.NaN);
      },
    });
  gauge(
    'inference_proxy_queued_runs',
    'Runs in the queue of an app, over all gateways',
    ['project', 'app'],
    (metric, { projects }) => {
      for (const { project, apps } of projects)
        for (const { app, queued } of apps) metric.set({ project, app }, queued);
    },
  );
  gauge(
    'inference_proxy_queue_oldest_seconds',
    'Waiting time of the oldest run in the queue of an app',
    ['project', 'app'],
    (metric, { projects }) => {
      for (const { project, apps } of projects)
        for (const { app, oldestQueuedMs } of apps) metric.set({ project, app }, oldestQueuedMs / 1000);
    },
  );
  gauge(
    'inference_proxy_running_runs',
    'Runs that workers execute, over all workers',
    ['project'],
    (metric, { projects }) => {
      for (const { project, running } of projects) metric.set({ project }, running);
    },
  );
  gauge('inference_proxy_project_bytes', "Bytes of a project's runs in Redis", ['project'], (metric, found) => {
    for (const { project, bytes } of found.projects) metric.set({ project }, bytes);
  });
  gauge('inference_proxy_store_bytes', 'Bytes of all runs in Redis', [], (metric, { store }) =>
    metric.set(store.bytes),
  );
  gauge(
    'inference_proxy_store_bound_bytes',
    'Limit of the bytes of all runs (RUN_STORE_MAX_BYTES)',
    [],
    (metric, { store }) => metric.set(store.boundBytes),
  );
}
