// runtimes.md 4.5: one app's versions. A new one is started beside the old, takes over when it is ready, and the old one ends its runs.
import { type AppDescription, type ErrorFields, ServiceError } from '@inference-proxy/contracts';
import type { RunListener, RunningRun, RunRequest, Runtime } from '../runtimes/runtime.ts';
import type { AppFolder } from './app-folders.ts';
import type { Manifest } from './manifest.ts';

/** One version of an app's code, or why it cannot be one. */
export interface OfferedVersion {
  readonly version: string;
  readonly manifest: Manifest | undefined;
  /** Set where there is no manifest: what is wrong with it. */
  readonly error?: ErrorFields;
}

/** Makes the runtime of one version; not yet started. */
export type MakeRuntime = (place: AppFolder, version: string, manifest: Manifest) => Runtime;

export interface VersionsListener {
  /** What is announced of the app has changed. */
  changed(): void;
  /** Slots may have become free. */
  freed(): void;
}

interface Started extends OfferedVersion {
  readonly runtime: Runtime | undefined;
}

interface VersionsLogger {
  info(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

const DEFAULT_QUEUE = { queueLimit: 1_000, queueTimeoutMs: 600_000 };

/** An app's versions: the one that serves, at most one that is to replace it, and those that end their last runs. */
export class AppVersions {
  private current: Started | undefined;
  /** Being started while `current` serves. */
  private next: Started | undefined;
  private readonly leaving = new Set<Promise<void>>();
  private offered: string | undefined;
  private closed = false;
  private readonly decided = Promise.withResolvers<void>();

  constructor(
    readonly place: AppFolder,
    private readonly make: MakeRuntime,
    private readonly listener: VersionsListener,
    private readonly logger: VersionsLogger,
  ) {}

  /** Resolves when the first start has succeeded or failed. */
  get firstStart(): Promise<void> {
    return this.decided.promise;
  }

  /** Runs that this app takes more, now. */
  get freeSlots(): number {
    return this.current?.runtime?.freeSlots ?? 0;
  }

  /** The manifest of the version that serves. */
  get manifest(): Manifest | undefined {
    return this.current?.manifest;
  }

  /** The version that was seen last, whether it serves or not. */
  get latest(): string | undefined {
    return this.offered;
  }

  /** Starts this version, and lets it take over when it is ready; at once where nothing serves. */
  offer(offered: OfferedVersion): void {
    if (this.closed || offered.version === this.offered) return;
    this.offered = offered.version;
    const replaced = this.next;
    this.next = undefined;
    if (replaced) this.leave(replaced);
    const isServing = this.current?.runtime?.state === 'ready';
    if (!offered.manifest && isServing) {
      this.logger.error({ ...this.names(offered), err: offered.error }, 'new version not started, the old one goes on');
      return;
    }
    const started: Started = {
      ...offered,
      runtime: offered.manifest && this.make(this.place, offered.version, offered.manifest),
    };
    if (isServing) this.next = started;
    else this.put(started);
    started.runtime?.onChange(() => this.changed(started));
    started.runtime?.onFreeSlot(() => this.current === started && this.listener.freed());
    this.logger.info(this.names(started), isServing ? 'starting a new version beside the old one' : 'starting');
    started.runtime?.start();
    if (!started.runtime) {
      this.logger.error({ ...this.names(started), err: started.error }, 'app cannot be started');
      this.decided.resolve();
    }
    this.listener.changed();
  }

  /**
   * Starts a run on the version that serves.
   *
   * @throws ServiceError `unavailable` where nothing serves, and as the runtime's `run`
   */
  run(request: RunRequest, listener: RunListener): { running: RunningRun; version: string } {
    const { runtime, version } = this.current ?? {};
    if (!runtime || version === undefined)
      throw new ServiceError('unavailable', 'No version of the app can run just now.');
    return { running: runtime.run(request, listener), version };
  }

  describe(): AppDescription {
    const { version = '', manifest, runtime, error } = this.current ?? {};
    const { queueLimit, queueTimeoutMs } = manifest ?? DEFAULT_QUEUE;
    const why = error ?? (runtime?.state === 'broken' ? runtime.error : undefined);
    return {
      app: this.place.app,
      state: error ? 'broken' : (runtime?.state ?? 'starting'),
      version,
      functions: runtime?.functions ?? [],
      ...(why && { error: why }),
      queueLimit,
      queueTimeoutMs,
      preformatted: manifest?.preformatted ?? true,
    };
  }

  /** Lets the runs of all versions end, then ends their processes. Resolves when none is left. */
  async drain(): Promise<void> {
    this.closed = true;
    this.decided.resolve();
    for (const started of [this.next, this.current]) if (started) this.leave(started);
    this.next = undefined;
    this.current = undefined;
    await Promise.all(this.leaving);
  }

  /** The runtime of `started` has changed its state. */
  private changed(started: Started): void {
    const state = started.runtime?.state;
    if (started === this.next) this.decide(started);
    if (started !== this.current) return;
    if (state !== 'starting') this.decided.resolve();
    if (state === 'ready') this.listener.freed();
    this.listener.changed();
  }

  /** The version that is to take over is ready, or never will be. */
  private decide(next: Started): void {
    if (next.runtime?.state === 'ready') {
      this.next = undefined;
      this.logger.info(this.names(next), 'new version takes over');
      this.put(next);
    } else if (next.runtime?.state === 'broken') {
      this.next = undefined;
      this.logger.error(
        { ...this.names(next), error: next.runtime.error },
        'new version did not start, the old one goes on',
      );
      this.leave(next);
    }
  }

  private put(started: Started): void {
    const old = this.current;
    this.current = started;
    if (old) this.leave(old);
  }

  private leave({ runtime, ...version }: Started): void {
    if (!runtime) return;
    const left = runtime
      .drain()
      .catch((err: unknown) => this.logger.error({ ...this.names(version), err }, 'version not ended in order'))
      .finally(() => this.leaving.delete(left));
    this.leaving.add(left);
  }

  private names({ version }: { version: string }): object {
    return { project: this.place.project, app: this.place.app, version };
  }
}
