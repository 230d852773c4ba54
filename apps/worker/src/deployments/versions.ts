// One app's versions. A new one is started beside the old, takes over when it is ready, and the old one ends its runs.
import { type AppDescription, type ErrorFields, type FailedVersion, ServiceError } from '@inference-proxy/contracts';
import { withoutTraceback } from '../runtimes/app-log.ts';
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

/** A run, and the version that executes it. */
export interface StartedRun {
  readonly running: RunningRun;
  readonly version: string;
  readonly limits: Pick<Manifest, 'maxOutputBytes' | 'retryOnCrash'>;
}

interface Started extends OfferedVersion {
  readonly runtime: Runtime | undefined;
}

/** A version that ends its last runs. */
interface Leaving {
  readonly left: Promise<void>;
  /** The one port that it listens on, where its manifest names one. */
  readonly port: number | undefined;
}

interface VersionsLogger {
  info(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

const UNKNOWN: ErrorFields = { code: 'app_failed_to_start', message: 'the version did not start' };
const DEFAULT_QUEUE = { queueLimit: 1_000, queueTimeoutMs: 600_000 };

/** An app's versions: the one that serves, at most one that is to replace it, and those that end their last runs. */
export class AppVersions {
  private current: Started | undefined;
  /** Being started while `current` serves. */
  private next: Started | undefined;
  private readonly leaving = new Map<Runtime, Leaving>();
  private offered: string | undefined;
  /** The version offered last, if it did not start while `current` serves. */
  private failed: FailedVersion | undefined;
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

  /** The manifest of the version that serves. A run has the limits of its own version: {@link StartedRun}. */
  get manifest(): Manifest | undefined {
    return this.current?.manifest;
  }

  /** Starts this version, and lets it take over when it is ready; at once where nothing serves. */
  offer(offered: OfferedVersion): void {
    if (this.closed || offered.version === this.offered) return;
    this.offered = offered.version;
    if (this.next) this.leave(this.next);
    this.next = undefined;
    this.failed = undefined;
    const isServing = this.current?.runtime?.state === 'ready';
    if (isServing && offered.version === this.current?.version) {
      this.logger.info(this.names(offered), 'back to the version that serves');
      this.listener.changed();
      return;
    }
    const { version, manifest, error } = offered;
    if (!manifest) {
      this.logger.error(
        { ...this.names(offered), error },
        `app cannot be started${isServing ? ', its old version goes on' : ''}`,
      );
      if (isServing) this.fail(version, error);
      else this.put({ ...offered, runtime: undefined });
      this.decided.resolve();
      return;
    }
    const started: Started = { ...offered, runtime: this.make(this.place, version, manifest) };
    const port = manifest.server?.port;
    const taken =
      port !== undefined && (port === this.current?.manifest?.server?.port || this.holdersOf(port).length > 0);
    if (isServing && !taken) this.next = started;
    else this.put(started);
    if (taken) void this.startInTurn(started, port);
    else this.start(started);
  }

  /** Two servers cannot listen on one port: calls wait while the old version ends its runs, and until the new one is ready. */
  private async startInTurn(started: Started, port: number): Promise<void> {
    this.logger.info({ ...this.names(started), port }, 'starting as soon as the old version has left its port');
    await Promise.all(this.holdersOf(port));
    if (this.current === started && !this.closed) this.start(started);
  }

  private holdersOf(port: number): Promise<void>[] {
    return [...this.leaving.values()].filter((leaving) => leaving.port === port).map(({ left }) => left);
  }

  /**
   * Starts a run on the version that serves. The run keeps the limits of this version, whatever replaces the version later.
   *
   * @throws ServiceError `unavailable` if no version serves
   */
  run(request: RunRequest, listener: RunListener): StartedRun {
    const { runtime, version, manifest } = this.current ?? {};
    if (!runtime || version === undefined || manifest === undefined)
      throw new ServiceError('unavailable', 'No version of the app can run just now.');
    return { running: runtime.run(request, listener), version, limits: manifest };
  }

  describe(): AppDescription {
    const { version = '', manifest, runtime, error } = this.current ?? {};
    const { queueLimit, queueTimeoutMs } = manifest ?? DEFAULT_QUEUE;
    const why = error ?? (runtime?.state === 'broken' ? runtime.error : undefined);
    return {
      app: this.place.app,
      kind: manifest?.server ? 'server' : 'functions',
      state: why ? 'broken' : runtime?.state === 'ready' ? 'ready' : 'starting',
      version,
      functions: runtime?.functions ?? [],
      ...(why && { error: why }),
      ...(this.failed && { failed: this.failed }),
      queueLimit,
      queueTimeoutMs,
      // Ready-made events are how a server's events keep their names.
      preformatted: manifest?.server !== undefined || (manifest?.preformatted ?? true),
      ...(manifest?.server?.forwardAuth && { forwardAuth: true }),
    };
  }

  /** Lets the runs of all versions end, until `signal` fires, and ends their processes. Resolves when none is left. */
  async drain(signal?: AbortSignal): Promise<void> {
    this.closed = true;
    this.decided.resolve();
    for (const started of [this.next, this.current]) if (started) this.leave(started);
    this.next = undefined;
    this.current = undefined;
    const close = (): void => {
      for (const runtime of this.leaving.keys()) void runtime.close();
    };
    if (signal?.aborted) close();
    signal?.addEventListener('abort', close);
    await Promise.all([...this.leaving.values()].map(({ left }) => left));
    signal?.removeEventListener('abort', close);
  }

  private start(started: Started): void {
    const { runtime } = started;
    this.logger.info(this.names(started), started === this.next ? 'starting beside the old version' : 'starting');
    runtime?.onChange(() => this.changed(started));
    runtime?.onFreeSlot(() => {
      if (started === this.current) this.listener.freed();
    });
    runtime?.start();
  }

  /** State, functions or error of `started` have changed. */
  private changed(started: Started): void {
    const state = started.runtime?.state;
    if (started === this.next) {
      if (state === 'ready') this.takeOver(started);
      if (state === 'broken') this.giveUp(started);
    } else if (started === this.current && !this.closed) {
      if (state === 'ready') this.logger.info(this.names(started), 'serving');
      if (state === 'ready' || state === 'broken') this.decided.resolve();
      this.listener.changed();
    }
  }

  private takeOver(next: Started): void {
    this.next = undefined;
    this.logger.info(this.names(next), 'the new version takes over');
    this.put(next);
    this.listener.freed();
  }

  /** The version that serves goes on; this one is tried again when its code changes. */
  private giveUp(next: Started): void {
    this.next = undefined;
    const error = next.runtime?.error && withoutTraceback(next.runtime.error);
    this.logger.error({ ...this.names(next), error }, 'the new version did not start, the old one goes on');
    void next.runtime?.close();
    this.leave(next);
    this.fail(next.version, error);
  }

  /** Reports the failed version beside the version that serves. */
  private fail(version: string, error = UNKNOWN): void {
    this.failed = { version, error };
    this.listener.changed();
  }

  private put(started: Started): void {
    this.failed = undefined;
    const old = this.current;
    this.current = started;
    if (old) this.leave(old);
    this.listener.changed();
  }

  /** Lets a version end its runs, each of which has a time limit of its own. */
  private leave({ runtime, manifest }: Started): void {
    if (!runtime) return;
    const left = runtime.drain().finally(() => this.leaving.delete(runtime));
    this.leaving.set(runtime, { left, port: manifest?.server?.port });
  }

  private names({ version }: { version: string }): object {
    return { project: this.place.project, app: this.place.app, version };
  }
}
