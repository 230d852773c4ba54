// Contract 7: the versions of an app. A new version starts beside the old version and replaces it when ready. The old version then ends its runs.
import { type AppDescription, type ErrorFields, type FailedVersion, ServiceError } from '@inference-proxy/contracts';
import { withoutTraceback } from '../runtimes/app-log.ts';
import type { RunListener, RunningRun, RunRequest, Runtime } from '../runtimes/runtime.ts';
import type { AppFolder } from './app-folders.ts';
import type { Manifest } from './manifest.ts';

/** A version of an app's code, or the reason why it cannot run. */
export interface OfferedVersion {
  readonly version: string;
  readonly manifest: Manifest | undefined;
  /** The error of the manifest. Set if there is no manifest. */
  readonly error?: ErrorFields;
  /** The version's folder, if it is not the app's. */
  readonly folder?: string;
}

/** Creates the runtime of a version without starting it. */
export type MakeRuntime = (place: AppFolder, version: string, manifest: Manifest) => Runtime;

/** A run and the version that executes it. */
export interface StartedRun {
  readonly running: RunningRun;
  readonly version: string;
  readonly limits: Pick<Manifest, 'maxOutputBytes' | 'retryOnCrash'>;
}

interface Started extends OfferedVersion {
  readonly runtime: Runtime | undefined;
}

/** A version that is ready or will be, and takes over only when it is activated. */
interface Held {
  readonly started: Started;
  /** Called once, with the error if the version failed to start. */
  readonly decided: (error?: ErrorFields) => void;
}

/** A version that waits for the end of its last runs. */
interface Leaving {
  readonly left: Promise<void>;
  /** The version's fixed port, if its manifest names a port. */
  readonly port: number | undefined;
}

interface VersionsLogger {
  info(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

const UNKNOWN: ErrorFields = { code: 'app_failed_to_start', message: 'the version did not start' };
const DEFAULT_QUEUE = { queueLimit: 1_000, queueTimeoutMs: 600_000 };

/** The serving version of an app, at most one version that will replace it, and old versions that end their last runs. */
export class AppVersions {
  #current: Started | undefined;
  /** Starts while `current` serves. */
  #next: Started | undefined;
  #held: Held | undefined;
  /** Why the app has no version yet. */
  #waiting: string | undefined;
  readonly #leaving = new Map<Runtime, Leaving>();
  #offered: string | undefined;
  /** The version that was offered last, if it failed to start while `current` serves. */
  #failed: FailedVersion | undefined;
  #closed = false;
  readonly #decided = Promise.withResolvers<void>();

  readonly #make: MakeRuntime;
  readonly #describeAgain: () => void;
  readonly #logger: VersionsLogger;

  /** @param changed called when the description of the app has changed */
  constructor(
    readonly place: AppFolder,
    make: MakeRuntime,
    changed: () => void,
    logger: VersionsLogger,
  ) {
    this.#make = make;
    this.#describeAgain = changed;
    this.#logger = logger;
  }

  /** Resolves when the first start has succeeded or failed. */
  get firstStart(): Promise<void> {
    return this.#decided.promise;
  }

  /** Returns the number of further runs that this app accepts now. */
  get freeSlots(): number {
    return this.#current?.runtime?.freeSlots ?? 0;
  }

  /** Returns the serving version. */
  get version(): string | undefined {
    return this.#current?.version;
  }

  /** Returns the manifest of the serving version. A run keeps the limits of its own version: {@link StartedRun}. */
  get manifest(): Manifest | undefined {
    return this.#current?.manifest;
  }

  /** Starts a version. It replaces the serving version when it is ready, or at once if no version serves. */
  offer(offered: OfferedVersion): void {
    if (this.#closed || offered.version === this.#offered) return;
    this.#offered = offered.version;
    if (this.#next) this.#leave(this.#next);
    this.#next = undefined;
    this.#failed = undefined;
    const isServing = this.#current?.runtime?.state === 'ready';
    if (isServing && offered.version === this.#current?.version) {
      this.#logger.info(this.#names(offered), 'the code is again that of the serving version');
      this.#describeAgain();
      return;
    }
    const { version, manifest, error } = offered;
    if (!manifest) {
      this.#logger.error(
        { ...this.#names(offered), error },
        `app cannot be started${isServing ? '; its old version still serves' : ''}`,
      );
      if (isServing) this.#fail(version, error);
      else this.#put({ ...offered, runtime: undefined });
      this.#decided.resolve();
      return;
    }
    const started = this.#made(offered, manifest);
    const { port, portInUse } = this.#portOf(manifest);
    if (isServing && !portInUse) this.#next = started;
    else this.#put(started);
    if (portInUse) void this.#startInTurn(started, port);
    else this.#start(started);
  }

  /**
   * Starts a version beside the serving version. The version takes over only when `activate` names it. Replaces an earlier prepared version.
   *
   * A server whose fixed port is in use counts as ready, because it can start only after the old version has left the port.
   *
   * @param decided called once: with the error if the version failed to start, or without an error when it is ready
   */
  prepare(offered: OfferedVersion & { readonly manifest: Manifest }, decided: (error?: ErrorFields) => void): void {
    this.dismiss();
    const isServing = this.#current?.runtime?.state === 'ready' && this.#current.version === offered.version;
    if (this.#closed || isServing || this.#portOf(offered.manifest).portInUse) {
      decided();
      return;
    }
    const started = this.#made(offered, offered.manifest);
    let isDecided = false;
    const once = (error?: ErrorFields): void => {
      if (!isDecided) decided(error);
      isDecided = true;
    };
    this.#held = { started, decided: once };
    this.#start(started);
  }

  /** Lets the prepared version take over. Returns false if another version or no version is prepared. */
  activate(version: string): boolean {
    const started = this.#held?.started;
    if (started === undefined || started.version !== version || this.#closed) return false;
    this.#held = undefined;
    if (this.#next) this.#leave(this.#next);
    this.#next = undefined;
    this.#offered = version;
    const isReady = started.runtime?.state === 'ready';
    this.#logger.info(this.#names(started), 'the version is active');
    if (!isReady && this.#current?.runtime?.state === 'ready') this.#next = started;
    else this.#put(started);
    if (isReady) this.#decided.resolve();
    return true;
  }

  /** Sets why the app waits, until it has a version. Without a reason, the app does not wait. */
  waits(reason?: string): void {
    if (reason === this.#waiting) return;
    this.#waiting = reason;
    if (!this.#current) this.#describeAgain();
  }

  /** Ends the prepared version. */
  dismiss(): void {
    const started = this.#held?.started;
    this.#held = undefined;
    if (started) this.#leave(started);
  }

  #made(offered: OfferedVersion, manifest: Manifest): Started {
    const place = offered.folder === undefined ? this.place : { ...this.place, folder: offered.folder };
    return { ...offered, runtime: this.#make(place, offered.version, manifest) };
  }

  /** Returns the fixed port of a version, if it has one, and whether an older version uses the port. */
  #portOf({ server }: Manifest): { port: number; portInUse: true } | { port: number | undefined; portInUse: false } {
    const port = server?.port;
    if (port === undefined) return { port, portInUse: false };
    const portInUse = port === this.#current?.manifest?.server?.port || this.#leavingPort(port).length > 0;
    return { port, portInUse };
  }

  /** Starts a version after the old version has left their common port. Calls wait until the new version is ready. */
  async #startInTurn(started: Started, port: number): Promise<void> {
    this.#logger.info({ ...this.#names(started), port }, 'waiting for the old version to leave the port');
    await Promise.all(this.#leavingPort(port));
    if (this.#current === started && !this.#closed) this.#start(started);
  }

  #leavingPort(port: number): Promise<void>[] {
    return [...this.#leaving.values()].filter((leaving) => leaving.port === port).map(({ left }) => left);
  }

  /**
   * Starts a run on the serving version. The run keeps the limits of this version after the version is replaced.
   *
   * @throws ServiceError `unavailable` if no version serves
   */
  run(request: RunRequest, listener: RunListener): StartedRun {
    const { runtime, version, manifest } = this.#current ?? {};
    if (!runtime || version === undefined || manifest === undefined)
      throw new ServiceError('unavailable', 'No version of the app can run now.');
    return { running: runtime.run(request, listener), version, limits: manifest };
  }

  describe(): AppDescription {
    const { version = '', manifest, runtime, error } = this.#current ?? {};
    const { queueLimit, queueTimeoutMs } = manifest ?? DEFAULT_QUEUE;
    const why = error ?? (runtime?.state === 'broken' ? runtime.error : undefined);
    return {
      app: this.place.app,
      kind: manifest?.server ? 'server' : 'functions',
      state: why ? 'broken' : runtime?.state === 'ready' ? 'ready' : 'starting',
      version,
      functions: (runtime?.functions ?? []).map((spec) => {
        const examples = manifest?.examples[spec.name];
        return examples === undefined ? spec : { ...spec, examples };
      }),
      ...(why && { error: why }),
      ...(!this.#current && this.#waiting !== undefined && { waiting: this.#waiting }),
      ...(this.#failed && { failed: this.#failed }),
      queueLimit,
      queueTimeoutMs,
      // A server's events keep their names only as ready-made events.
      preformatted: manifest?.server !== undefined || (manifest?.preformatted ?? true),
      ...(manifest?.maxBodyBytes !== undefined && { maxBodyBytes: manifest.maxBodyBytes }),
      ...(manifest?.server?.forwardAuth && { forwardAuth: true }),
    };
  }

  /** Waits for the runs of all versions until `signal` fires, then ends their processes. Resolves when all processes have ended. */
  async drain(signal?: AbortSignal): Promise<void> {
    this.#closed = true;
    this.#decided.resolve();
    this.dismiss();
    for (const started of [this.#next, this.#current]) if (started) this.#leave(started);
    this.#next = undefined;
    this.#current = undefined;
    const close = (): void => {
      for (const runtime of this.#leaving.keys()) void runtime.close();
    };
    if (signal?.aborted) close();
    signal?.addEventListener('abort', close);
    await Promise.all([...this.#leaving.values()].map(({ left }) => left));
    signal?.removeEventListener('abort', close);
  }

  #start(started: Started): void {
    const { runtime } = started;
    const isCurrent = started === this.#current;
    this.#logger.info(this.#names(started), isCurrent ? 'starting' : 'starting beside the old version');
    runtime?.onChange(() => this.#changed(started));
    runtime?.start();
  }

  /** Handles a change of the state, functions or error of `started`. */
  #changed(started: Started): void {
    const state = started.runtime?.state;
    if (started === this.#held?.started) {
      if (state === 'ready') this.#held.decided();
      if (state === 'broken') this.#held.decided(started.runtime?.error ?? UNKNOWN);
    } else if (started === this.#next) {
      if (state === 'ready') this.#takeOver(started);
      if (state === 'broken') this.#giveUp(started);
    } else if (started === this.#current && !this.#closed) {
      if (state === 'ready') this.#logger.info(this.#names(started), 'serving');
      if (state === 'ready' || state === 'broken') this.#decided.resolve();
      this.#describeAgain();
    }
  }

  #takeOver(next: Started): void {
    this.#next = undefined;
    this.#logger.info(this.#names(next), 'the new version takes over');
    this.#put(next);
  }

  /** Drops a new version that failed to start. The old version still serves; a change of the code starts another try. */
  #giveUp(next: Started): void {
    this.#next = undefined;
    const error = next.runtime?.error && withoutTraceback(next.runtime.error);
    this.#logger.error({ ...this.#names(next), error }, 'the new version did not start; the old version still serves');
    void next.runtime?.close();
    this.#leave(next);
    this.#fail(next.version, error);
  }

  /** Reports the failed version beside the serving version. */
  #fail(version: string, error = UNKNOWN): void {
    this.#failed = { version, error };
    this.#describeAgain();
  }

  #put(started: Started): void {
    this.#failed = undefined;
    const old = this.#current;
    this.#current = started;
    if (old) this.#leave(old);
    this.#describeAgain();
  }

  /** Lets a version end its runs. Each run has a time limit. */
  #leave({ runtime, manifest }: Started): void {
    if (!runtime) return;
    const left = runtime.drain().finally(() => this.#leaving.delete(runtime));
    this.#leaving.set(runtime, { left, port: manifest?.server?.port });
  }

  #names({ version }: { version: string }): object {
    return { project: this.place.project, app: this.place.app, version };
  }
}
