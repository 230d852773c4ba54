// Contract 5: serves the projects of this worker's apps. Each project has a subscription, an intake and leases.
import { retry } from '@inference-proxy/retry';
import type { StoreLogger, TakenRun, WorkerStore } from '@inference-proxy/store';
import type { AppVersions } from '../deployments/versions.ts';
import type { RunAccountParts } from '../operations/run-account.ts';
import type { FreedSlots } from '../runtimes/freed-slots.ts';
import { Execution } from './execute-run.ts';
import { Leases } from './leases.ts';
import { OpenAttempts } from './open-attempts.ts';
import { type OpenQueue, RunIntake } from './run-intake.ts';
import type { RunLogWriters } from './run-log-writer.ts';

const RETRY_MS = 1_000;

/** The apps of this worker, as serving needs them. */
export interface ServedApps {
  projects(): readonly string[];
  appsOf(project: string): readonly AppVersions[];
  find(project: string, app: string): AppVersions | undefined;
}

interface ServingLogger extends StoreLogger {
  info(fields: object, text: string): void;
}

/** The intake and the leases of a project. */
interface ServedProject {
  readonly intake: RunIntake;
  readonly leases: Leases<Execution>;
  /** Ends the retries of the subscription. */
  readonly listening: AbortController;
}

type ServingStore = Pick<
  WorkerStore,
  | 'serve'
  | 'leave'
  | 'take'
  | 'append'
  | 'head'
  | 'end'
  | 'renew'
  | 'release'
  | 'timings'
  | 'onWake'
  | 'onCancel'
  | 'onReaderPosition'
>;

/** Takes runs of the served apps and executes them until it is stopped. */
export class Serving {
  readonly #open = new OpenAttempts<Execution>();
  readonly #projects = new Map<string, ServedProject>();
  #stopped = false;

  readonly #store: ServingStore;
  readonly #apps: ServedApps;
  readonly #slots: FreedSlots;
  readonly #logger: ServingLogger;
  readonly #accounts: RunAccountParts;
  readonly #logs: RunLogWriters;

  constructor(
    store: ServingStore,
    apps: ServedApps,
    slots: FreedSlots,
    logger: ServingLogger,
    accounts: RunAccountParts,
    logs: RunLogWriters,
  ) {
    this.#store = store;
    this.#apps = apps;
    this.#slots = slots;
    this.#logger = logger;
    this.#accounts = accounts;
    this.#logs = logs;

    store.onWake = (project, queue) => this.#projects.get(project)?.intake.wake(queue);
    store.onCancel = (run) => this.#open.find(run)?.cancelled();
    store.onReaderPosition = ({ upTo, ...run }) => this.#open.find(run)?.readTo(upTo);
  }

  /** Follows a change of the apps: begins to serve new projects, and leaves projects without apps. */
  follow(): void {
    if (this.#stopped) return;
    const wanted = new Set(this.#apps.projects());
    for (const project of wanted) {
      const served = this.#projects.get(project);
      if (!served) this.#begin(project);
      else {
        served.leases.now();
        // A version that was prepared and is now active has free slots, which no process publishes again.
        served.intake.follow();
      }
    }
    for (const [project, served] of this.#projects) if (!wanted.has(project)) void this.#end(project, served);
  }

  /** Looks for queued runs without a wake from the store. */
  wake(project: string): void {
    this.#projects.get(project)?.intake.wake(undefined);
  }

  /** Returns the number of runs in progress. */
  get runs(): number {
    return this.#open.size;
  }

  /** Stops taking runs. */
  async stopIntake(): Promise<void> {
    this.#stopped = true;
    await Promise.all(
      [...this.#projects.values()].map(({ intake, listening }) => {
        listening.abort();
        return intake.stop();
      }),
    );
  }

  /**
   * Waits until all runs end. Interrupts them after `graceMs`. When `signal` fires, gives up the outcomes that are not stored yet.
   */
  async drain(graceMs: number, signal: AbortSignal): Promise<void> {
    const empty = this.#open.empty();
    const interrupt = setTimeout(() => {
      this.#logger.warn({ runs: this.#open.size }, 'runs did not end within the grace period; interrupting them');
      for (const run of this.#open.all()) run.interrupt();
    }, graceMs);
    const given = Promise.withResolvers<void>();
    const giveUp = (): void => {
      for (const run of this.#open.all()) run.giveUp();
      given.resolve();
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp);
    await Promise.race([empty, given.promise]);
    signal.removeEventListener('abort', giveUp);
    clearTimeout(interrupt);
    await Promise.all([...this.#projects.values()].map(({ leases }) => leases.stop()));
  }

  #begin(project: string): void {
    const slots = (): OpenQueue[] => this.#apps.appsOf(project).flatMap((app) => app.openQueues);
    const intake = new RunIntake(project, this.#store, slots, (run) => void this.#execute(this.#executionOf(run)));
    this.#slots.subscribe(project, () => intake.look());
    // A worker that takes no more runs does not count as serving, even while its last runs continue. The callers' wait for a worker begins now.
    // No worker serves an app that does not start. Its queued runs fail with the reason (reap.lua), unless another worker serves the app.
    const servable = (app: AppVersions): boolean => !this.#stopped && app.describe().state !== 'broken';
    const names = (): string[] => {
      const served = this.#apps.appsOf(project).filter(servable);
      return served.flatMap((app) => [app.place.app, ...app.versionQueues]);
    };
    const leases = new Leases(project, this.#store, this.#open, names, this.#logger);
    const served: ServedProject = { intake, leases, listening: new AbortController() };
    this.#projects.set(project, served);
    leases.start();
    void this.#listen(project, served.listening.signal);
  }

  /** Subscribes to the project's messages. The store then wakes the project's intake. */
  async #listen(project: string, signal: AbortSignal): Promise<void> {
    const failed = (err: unknown): void =>
      this.#logger.warn({ err, project }, 'subscribing to the project failed; retrying');
    // Rejects only after the signal: this worker stops, or has left the project.
    await retry(() => this.#store.serve(project), { firstMs: RETRY_MS, signal, failed }).catch(() => {});
  }

  /** Leaves a project without apps. Its runs end first, because their leases must be renewed until then. */
  async #end(project: string, served: ServedProject): Promise<void> {
    served.listening.abort();
    this.#projects.delete(project);
    this.#slots.unsubscribe(project);
    await served.intake.stop();
    await this.#open.empty(project);
    await served.leases.stop();
    if (this.#projects.has(project)) return;
    await this.#store
      .leave(project)
      .catch((err: unknown) =>
        this.#logger.warn({ err, project }, 'the worker did not leave the project; its lease there expires'),
      );
  }

  #executionOf(run: TakenRun): Execution {
    return new Execution(
      run,
      this.#apps.find(run.project, run.app),
      this.#store,
      this.#logger,
      this.#accounts,
      this.#logs,
    );
  }

  /** Takes no TakenRun, because a suspended function keeps its arguments, and the parameters in a TakenRun may be megabytes. */
  async #execute(execution: Execution): Promise<void> {
    this.#open.add(execution);
    await execution.execute();
    this.#open.remove(execution);
    this.#store.release(execution);
  }
}
