// Contract 5: renews the leases of this worker's runs with a call for each project. Its replies also carry acknowledgements and cancels.
import { backOffMs } from '@inference-proxy/retry';
import type { StoreLogger, WorkerStore } from '@inference-proxy/store';
import type { OpenAttempt, OpenAttempts } from './open-attempts.ts';

const RETRY_MS = 500;

/** Renews the leases of a project's runs, and announces that this worker serves the project's apps. */
export class Leases<Run extends OpenAttempt> {
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;
  #stopped = false;

  readonly #project: string;
  readonly #store: Pick<WorkerStore, 'renew' | 'timings'>;
  readonly #open: OpenAttempts<Run>;
  readonly #apps: () => readonly string[];
  readonly #logger: StoreLogger;

  /**
   * @param apps returns the project's apps that this worker serves
   */
  constructor(
    project: string,
    store: Pick<WorkerStore, 'renew' | 'timings'>,
    open: OpenAttempts<Run>,
    apps: () => readonly string[],
    logger: StoreLogger,
  ) {
    this.#project = project;
    this.#store = store;
    this.#open = open;
    this.#apps = apps;
    this.#logger = logger;
  }

  /** Renews at once, then every `timings.renewMs`. */
  start(): void {
    this.#after(0);
  }

  /** Renews at once, because the apps have changed. */
  now(): void {
    if (!this.#renewing) this.#after(0);
  }

  /** Resolves when an open call is answered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#renewing;
  }

  #after(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#renewing = this.#renew().then((next) => {
        this.#renewing = undefined;
        this.#after(next);
      });
    }, ms);
  }

  /** Renews once. Returns the milliseconds to the next renewal. */
  async #renew(): Promise<number> {
    const { renewMs } = this.#store.timings;
    const runs = this.#open.of(this.#project);
    try {
      const answers = await this.#store.renew(this.#project, runs, this.#apps());
      for (const [at, answer] of answers.entries()) {
        const run = runs[at];
        if (!run || this.#open.find(run) !== run) continue;
        if (answer.state === 'lost') run.lost();
        else {
          run.readTo(answer.position);
          if (answer.cancel) run.cancelled();
        }
      }
      return renewMs;
    } catch (err) {
      this.#logger.warn({ err, project: this.#project, runs: runs.length }, 'the leases were not renewed; retrying');
      return backOffMs(1, { firstMs: Math.min(RETRY_MS, renewMs) });
    }
  }
}
