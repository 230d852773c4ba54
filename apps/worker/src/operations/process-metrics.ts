// Contract 6, `/metrics` of a worker: the replicas of its apps.
import { Counter, Gauge, type Registry } from '@inference-proxy/platform';
import type { ServedApps } from '../execution/serving.ts';
import type { ProcessCounts } from '../runtimes/pool.ts';
import type { ReplicaState } from '../runtimes/replica-states.ts';

export class ProcessMetrics {
  readonly #replicas: Gauge<'project' | 'app' | 'state'>;
  readonly #starts: Counter<'project' | 'app' | 'result'>;
  readonly #crashes: Counter<'project' | 'app' | 'class'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#replicas = new Gauge({
      name: 'inference_proxy_replicas',
      help: 'Replicas by state, with the replicas of old versions',
      labelNames: ['project', 'app', 'state'],
      registers,
    });
    this.#starts = new Counter({
      name: 'inference_proxy_replica_starts_total',
      help: 'Starts of replicas, by result: ready or failed',
      labelNames: ['project', 'app', 'result'],
      registers,
    });
    this.#crashes = new Counter({
      name: 'inference_proxy_replica_crashes_total',
      help: 'Replicas that ended by themselves; class is exit, signal, killed, channel or unhealthy',
      labelNames: ['project', 'app', 'class'],
      registers,
    });
  }

  /** Returns the counters for the replicas of an app. */
  of(project: string, app: string): ProcessCounts {
    const at = (state: ReplicaState) => ({ project, app, state });
    return {
      moved: (from, to) => {
        if (from !== undefined) this.#replicas.dec(at(from));
        // An exited process is not a replica.
        if (to !== 'exited') this.#replicas.inc(at(to));
      },
      started: (result) => this.#starts.inc({ project, app, result }),
      crashed: (how) => this.#crashes.inc({ project, app, class: how }),
    };
  }
}

/** Registers the gauges of each app's slots. The values are read at each scrape. */
export function gaugeSlots(registry: Registry, apps: Pick<ServedApps, 'projects' | 'appsOf'>): void {
  const registers = [registry];
  const labelNames = ['project', 'app'] as const;
  const served = () => apps.projects().flatMap((project) => apps.appsOf(project));
  new Gauge({
    name: 'inference_proxy_slots',
    help: "Runs that this worker executes at a time, by the app's manifest",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { place, manifest } of served())
        this.set(
          { project: place.project, app: place.app },
          (manifest?.replicas ?? 0) * (manifest?.replicaConcurrency ?? 0),
        );
    },
  });
  new Gauge({
    name: 'inference_proxy_free_slots',
    help: 'Slots that are free',
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { place, freeSlots } of served()) this.set({ project: place.project, app: place.app }, freeSlots);
    },
  });
}
