// Serves projects: for each one whose apps this worker has, its word from the store, its intake and its leases.
import type { StoreLogger, TakenRun, WorkerStore } from '@inference-proxy/store';
import type { AppVersions } from '../deployments/versions.ts';
import type { RunAccountParts } from '../operations/run-account.ts';
import { Execution } from './execute-run.ts';
import { HeldRuns } from './held-runs.ts';
import { Intake, type Want } from './intake.ts';
import { Leases } from './leases.ts';
import type { RunLogs } from './run-log.ts';

const RETRY_MS = 1_000;

/** What serving needs to know of the apps. */
export interface ServedApps {
  projects(): readonly string[];
  appsOf(project: string): readonly AppVersions[];
  find(project: string, app: string): AppVersions | undefined;
}

interface ServingLogger extends StoreLogger {
  info(fields: object, text: string): void;
}

/** One project's part of this worker. */
interface ServedProject {
  readonly intake: Intake;
  readonly leases: Leases<Execution>;
  retryTimer: NodeJS.Timeout | undefined;
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
  | 'onTaken'
>;

/** Takes runs of the served apps and executes them, until it is told to stop. */
export class Serving {
  private readonly held = new HeldRuns<Execution>();
  private readonly projects = new Map<string, ServedProject>();
  private stopped = false;

  constructor(
    private readonly store: ServingStore,
    private readonly apps: ServedApps,
    private readonly logger: ServingLogger,
    private readonly accounts: RunAccountParts,
    private readonly logs: RunLogs,
  ) {
    store.onWake = (project, app) => this.projects.get(project)?.intake.wake(app);
    store.onCancel = (run) => this.held.find(run)?.cancelled();
    store.onTaken = ({ upTo, ...run }) => this.held.find(run)?.taken(upTo);
  }

  /** The apps have changed: begins to serve new projects, leaves those without apps. */
  follow(): void {
    if (this.stopped) return;
    const wanted = new Set(this.apps.projects());
    for (const project of wanted) {
      const served = this.projects.get(project);
      if (!served) this.begin(project);
      else served.leases.now();
    }
    for (const [project, served] of this.projects) if (!wanted.has(project)) void this.end(project, served);
  }

  /** Slots of an app may have become free. */
  freed(project: string): void {
    this.projects.get(project)?.intake.look();
  }

  /** Looks for queued runs although nothing said that there are any. */
  wake(project: string): void {
    this.projects.get(project)?.intake.wake(undefined);
  }

  /** How many runs are under way. */
  get runs(): number {
    return this.held.size;
  }

  /** Takes no more runs. */
  async stopIntake(): Promise<void> {
    this.stopped = true;
    await Promise.all(
      [...this.projects.values()].map(({ intake, retryTimer }) => {
        clearTimeout(retryTimer);
        return intake.stop();
      }),
    );
  }

  /**
   * Lets runs end: by themselves for `graceMs`, then interrupted; when `signal` fires, what the store has not been told by then is left.
   */
  async drain(graceMs: number, signal: AbortSignal): Promise<void> {
    const empty = this.held.empty();
    const interrupt = setTimeout(() => {
      this.logger.warn({ runs: this.held.size }, 'runs have not ended in time, interrupting them');
      for (const run of this.held.all()) run.interrupt();
    }, graceMs);
    const given = Promise.withResolvers<void>();
    const giveUp = (): void => {
      for (const run of this.held.all()) run.giveUp();
      given.resolve();
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp);
    await Promise.race([empty, given.promise]);
    signal.removeEventListener('abort', giveUp);
    clearTimeout(interrupt);
    await Promise.all([...this.projects.values()].map(({ leases }) => leases.stop()));
  }

  private begin(project: string): void {
    const slots = (): Want[] => this.apps.appsOf(project).map((app) => ({ app: app.place.app, slots: app.freeSlots }));
    const intake = new Intake(
      project,
      this.store,
      slots,
      (run) => void this.execute(this.executionOf(run)),
      (err) => this.logger.error({ err, project }, 'no runs taken, trying again'),
    );
    // Who takes no more runs serves no more, for all that its last runs may take: how long calls wait for another counts from here.
    // And what does not start is served by nobody: its queued runs fail with the reason (lua/reap), unless another worker has it.
    const servable = (app: AppVersions): boolean => !this.stopped && app.describe().state !== 'broken';
    const names = (): string[] => {
      const served = this.apps.appsOf(project).filter(servable);
      return served.map((app) => app.place.app);
    };
    const leases = new Leases(project, this.store, this.held, names, this.logger);
    const served: ServedProject = { intake, leases, retryTimer: undefined };
    this.projects.set(project, served);
    leases.start();
    void this.listen(project, served);
  }

  /** The store wakes the project's intake once it is listened to. */
  private async listen(project: string, served: ServedProject): Promise<void> {
    try {
      await this.store.serve(project);
    } catch (err) {
      this.logger.warn({ err, project }, 'project not served yet, trying again');
      if (this.stopped || this.projects.get(project) !== served) return;
      served.retryTimer = setTimeout(() => void this.listen(project, served), RETRY_MS);
    }
  }

  /** The project has no apps here any more. Its runs end first: their leases must be renewed till then. */
  private async end(project: string, served: ServedProject): Promise<void> {
    clearTimeout(served.retryTimer);
    this.projects.delete(project);
    await served.intake.stop();
    await this.held.empty(project);
    await served.leases.stop();
    if (this.projects.has(project)) return;
    await this.store.leave(project).catch((err: unknown) => this.logger.warn({ err, project }, 'project not left'));
  }

  private executionOf(run: TakenRun): Execution {
    return new Execution(run, this.apps.find(run.project, run.app), this.store, this.logger, this.accounts, this.logs);
  }

  /** Takes no TakenRun, because a suspended function keeps its arguments: the parameters among them may be megabytes. */
  private async execute(execution: Execution): Promise<void> {
    this.held.add(execution);
    await execution.execute();
    this.held.remove(execution);
    this.store.release(execution);
  }
}
