// Tells the registry what this worker serves (contract 1: `GET /v4/{project}`): on every change, and again when Redis came back.
import type { AppDescription } from '@inference-proxy/contracts';
import type { StoreLogger, WorkerStore } from '@inference-proxy/store';

const RETRY_MS = 1_000;

interface Announced {
  readonly project: string;
  readonly app: string;
  /** Undefined: the app is gone. */
  readonly describe: () => AppDescription | undefined;
}

/** Announces one app at a time each: the newest description wins, and none is overtaken by an older one. */
export class Announcer {
  private readonly apps = new Map<string, Announced>();
  /** Apps whose description has to be told (again). */
  private readonly stale = new Set<string>();
  private telling: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(
    private readonly store: Pick<WorkerStore, 'announce' | 'withdraw'>,
    private readonly logger: StoreLogger,
  ) {}

  /** This app's description has changed, or it is a new one; `describe` gives undefined once it is gone. */
  changed(project: string, app: string, describe: () => AppDescription | undefined): void {
    const key = `${project}/${app}`;
    this.apps.set(key, { project, app, describe });
    this.stale.add(key);
    this.tell();
  }

  /** Tells all again: Redis may have come back empty. */
  again(): void {
    for (const key of this.apps.keys()) this.stale.add(key);
    this.tell();
  }

  /** Resolves when all that was told so far is in the registry, or could not be. */
  async told(): Promise<void> {
    await this.telling;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.telling;
  }

  private tell(): void {
    if (this.stopped || this.telling) return;
    clearTimeout(this.timer);
    this.telling = this.tellAll().finally(() => {
      this.telling = undefined;
    });
  }

  private async tellAll(): Promise<void> {
    while (this.stale.size > 0 && !this.stopped) {
      const keys = [...this.stale];
      this.stale.clear();
      const failed = (await Promise.all(keys.map((key) => this.tellOne(key)))).some((told) => !told);
      if (!failed) continue;
      this.timer = setTimeout(() => this.tell(), RETRY_MS);
      return;
    }
  }

  private async tellOne(key: string): Promise<boolean> {
    const { project, app, describe } = this.apps.get(key) as Announced;
    const description = describe();
    try {
      if (description) await this.store.announce(project, description);
      else {
        await this.store.withdraw(project, app);
        if (!this.stale.has(key)) this.apps.delete(key);
      }
      return true;
    } catch (error) {
      this.logger.warn({ err: error, project, app }, 'app not announced, trying again');
      this.stale.add(key);
      return false;
    }
  }
}
