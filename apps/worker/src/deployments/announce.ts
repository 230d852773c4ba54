// Contract 7, "Apps": announces this worker's apps in the run store: at every change, and again after Redis was away.
import type { AppDescription } from '@inference-proxy/contracts';
import { backOffMs } from '@inference-proxy/retry';
import type { ReplicaCounts, StoreLogger, WorkerStore } from '@inference-proxy/store';

const RETRY_MS = 1_000;

interface Announced {
  readonly project: string;
  readonly app: string;
  readonly describe: DescribeApp;
}

/** Returns undefined if the app is gone. */
export type DescribeApp = () => { description: AppDescription; replicas: ReplicaCounts } | undefined;

/** Announces each app by a single call at a time, so that an older description never replaces a newer description. */
export class Announcer {
  readonly #apps = new Map<string, Announced>();
  /** Apps whose description must be announced (again). */
  readonly #stale = new Set<string>();
  #announcing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  readonly #store: Pick<WorkerStore, 'announce' | 'withdraw'>;
  readonly #logger: StoreLogger;

  constructor(store: Pick<WorkerStore, 'announce' | 'withdraw'>, logger: StoreLogger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** Announces a new app or a changed description. `describe` returns undefined after the app is gone. */
  changed(project: string, app: string, describe: DescribeApp): void {
    const key = `${project}/${app}`;
    this.#apps.set(key, { project, app, describe });
    this.#stale.add(key);
    this.#announce();
  }

  /** Announces all apps again, because Redis may have come back empty. */
  again(): void {
    for (const key of this.#apps.keys()) this.#stale.add(key);
    this.#announce();
  }

  /** Resolves when all announcements so far have succeeded or failed. */
  async settled(): Promise<void> {
    await this.#announcing;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#announcing;
  }

  #announce(): void {
    if (this.#stopped || this.#announcing) return;
    clearTimeout(this.#timer);
    this.#announcing = this.#announceAll().finally(() => {
      this.#announcing = undefined;
    });
  }

  async #announceAll(): Promise<void> {
    while (this.#stale.size > 0 && !this.#stopped) {
      const keys = [...this.#stale];
      this.#stale.clear();
      const failed = (await Promise.all(keys.map((key) => this.#announceOne(key)))).some((announced) => !announced);
      if (!failed) continue;
      // Every worker announces its apps when Redis is back.
      this.#timer = setTimeout(() => this.#announce(), backOffMs(1, { firstMs: RETRY_MS }));
      return;
    }
  }

  async #announceOne(key: string): Promise<boolean> {
    const { project, app, describe } = this.#apps.get(key) as Announced;
    const described = describe();
    try {
      if (described) await this.#store.announce(project, described.description, described.replicas);
      else {
        await this.#store.withdraw(project, app);
        if (!this.#stale.has(key)) this.#apps.delete(key);
      }
      return true;
    } catch (error) {
      this.#logger.warn({ err: error, project, app }, 'announcing the app failed; retrying');
      this.#stale.add(key);
      return false;
    }
  }
}
