// Contract 6, `/metrics` of a worker: results, durations and items of its runs.
import { Counter, DURATION_BUCKETS, Gauge, Histogram, type Registry } from '@inference-proxy/platform';

/** The app of a run. Only apps that this worker serves become labels. */
export interface OfApp {
  readonly project: string;
  readonly app: string;
}

export class RunMetrics {
  readonly #runs: Counter<'project' | 'app' | 'code'>;
  readonly #duration: Histogram<'project' | 'app'>;
  readonly #items: Counter<'project' | 'app'>;
  readonly #held: Gauge<'project' | 'app'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#runs = new Counter({
      name: 'inference_proxy_runs_total',
      help: 'Attempts of runs that ended on this worker; code is an error code, ok, requeued or lost',
      labelNames: ['project', 'app', 'code'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'inference_proxy_run_duration_seconds',
      help: 'Time in the function',
      labelNames: ['project', 'app'],
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.#items = new Counter({
      name: 'inference_proxy_items_total',
      help: 'Items that functions have yielded',
      labelNames: ['project', 'app'],
      registers,
    });
    this.#held = new Gauge({
      name: 'inference_proxy_worker_runs',
      help: 'Runs in progress at this worker',
      labelNames: ['project', 'app'],
      registers,
    });
  }

  begun({ project, app }: OfApp): void {
    this.#held.inc({ project, app });
  }

  items({ project, app }: OfApp, count: number): void {
    this.#items.inc({ project, app }, count);
  }

  ended({ project, app }: OfApp, code: string, seconds: number): void {
    this.#held.dec({ project, app });
    this.#runs.inc({ project, app, code });
    this.#duration.observe({ project, app }, seconds);
  }
}
