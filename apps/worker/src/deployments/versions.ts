// Contract 7: the versions of an app. A new version starts beside the old version and replaces it when ready. The old version then ends its runs.
import { type AppDescription, type ErrorFields, type FailedVersion, ServiceError } from '@inference-proxy/contracts';
import { type CallCounts, queueOf, type ReplicaCounts } from '@inference-proxy/store';
import type { OpenQueue } from '../execution/run-intake.ts';
import { withoutTraceback } from '../runtimes/app-log.ts';
import type { RunListener, RunRequest } from '../runtimes/runtime.ts';
import type { AppFolder } from './app-folders.ts';
import { CallTally } from './call-tally.ts';
import { describeApp } from './description.ts';
import type { Manifest } from './manifest.ts';
import type { MakeRuntime, OfferedVersion, Started, StartedRun } from './offered-version.ts';
import { OldVersions } from './old-versions.ts';

/** A version that is ready or will be, and takes over only when it is activated. */
interface Held {
  readonly started: Started;
  /** Called when the version is ready, and with the error if the version fails. */
  readonly decided: (error?: ErrorFields) => void;
  /** Receives the lines that the version prints until it is ready. */
  readonly printed: (texts: readonly string[]) => void;
  readonly tally: CallTally;
}

interface VersionsLogger {
  info(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

const UNKNOWN: ErrorFields = { code: 'app_failed_to_start', message: 'the version did not start' };

/**
 * The serving version of an app, at most one version that will replace it, and old versions that end their last runs.
 *
 * A deployed version has a queue of its own. After its time as the active version, it takes the runs that are left in its queue.
 */
export class AppVersions {
  #current: Started | undefined;
  /** Starts while `current` serves. */
  #next: Started | undefined;
  #held: Held | undefined;
  /** Why the app has no version yet. */
  #waiting: string | undefined;
  readonly #old = new OldVersions();
  #offered: string | undefined;
  /** The version that was offered last, if it failed to start while `current` serves. */
  #failed: FailedVersion | undefined;
  #closed = false;
  readonly #decided = Promise.withResolvers<void>();

  readonly #make: MakeRuntime;
  readonly #describeAgain: () => void;
  readonly #logger: VersionsLogger;

  /** @param changed called when the description or the replicas of the app have changed */
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

  /** Returns the queues of which this app's versions take runs now, with their free slots. Called whenever a slot becomes free. */
  get openQueues(): readonly OpenQueue[] {
    const { app } = this.place;
    if (!this.#isDeployed) return [{ app, slots: this.freeSlots, version: this.version }];
    const open = this.#having().map((started) => this.#queue(started));
    for (const started of this.#old.retiring)
      open.push({ ...this.#queue(started), emptied: () => this.#emptied(started) });
    return open;
  }

  /** Returns the names of the queues of the deployed versions that this worker has. */
  get versionQueues(): readonly string[] {
    if (!this.#isDeployed) return [];
    return [...this.#having(), ...this.#old.retiring].map(({ version }) => queueOf(this.place.app, version));
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
    if (this.#next) this.#old.leave(this.#next);
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
    this.#replaceBy({ ...offered, manifest });
  }

  /** Starts the versions again, because their processes need new secrets. The old processes serve until the new processes are ready. */
  restart(): void {
    if (this.#closed) return;
    const held = this.#held;
    if (held?.started.manifest) {
      this.#old.leave(held.started);
      this.#held = { ...held, started: this.#made(held.started, held.started.manifest) };
      this.#start(this.#held.started);
    }
    const { version, manifest, folder } = this.#next ?? this.#current ?? {};
    if (version === undefined || manifest === undefined) return;
    if (this.#next) this.#old.leave(this.#next);
    this.#next = undefined;
    this.#replaceBy({ version, manifest, ...(folder !== undefined && { folder }) });
  }

  /** Starts a version. It takes over when it is ready, or at once if no version serves. */
  #replaceBy(offered: OfferedVersion & { readonly manifest: Manifest }): void {
    const isServing = this.#current?.runtime?.state === 'ready';
    const started = this.#made(offered, offered.manifest);
    const { port, portInUse } = this.#portOf(offered.manifest);
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
   * @param decided called when the version is ready, and with the error if the version does not start or breaks later
   * @param printed receives the lines that the version prints until it is ready
   */
  prepare(
    offered: OfferedVersion & { readonly manifest: Manifest },
    decided: (error?: ErrorFields) => void,
    printed: (texts: readonly string[]) => void = () => {},
  ): void {
    this.dismiss();
    const isServing = this.#current?.runtime?.state === 'ready' && this.#current.version === offered.version;
    const retiring = this.#old.retired(offered.version);
    if (retiring && !this.#closed) {
      this.#old.takeBack(retiring);
      this.#held = { started: retiring, decided, printed, tally: new CallTally() };
      decided();
      return;
    }
    if (this.#closed || isServing || this.#portOf(offered.manifest).portInUse) {
      decided();
      return;
    }
    const started = this.#made(offered, offered.manifest);
    let isDecided = false;
    const once = (error?: ErrorFields): void => {
      if (!isDecided || error) decided(error);
      isDecided = true;
    };
    this.#held = { started, decided: once, printed, tally: new CallTally() };
    this.#start(started);
  }

  /** Returns the ended calls of the prepared version, or undefined if no version is prepared. */
  get preparedCalls(): CallCounts | undefined {
    return this.#held?.tally.counts;
  }

  /** Lets the prepared version take over. Returns false if another version or no version is prepared. */
  activate(version: string): boolean {
    const held = this.#held?.started;
    const started = held?.version === version ? held : this.#old.retired(version);
    if (started === undefined || this.#closed) return false;
    if (started === held) this.#held = undefined;
    this.#old.takeBack(started);
    if (this.#next) this.#old.leave(this.#next);
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
    // A repeated reason is announced again, because the announcement has no effect while the lease of a dead worker lasts.
    if (reason === undefined && this.#waiting === undefined) return;
    this.#waiting = reason;
    if (!this.#current) this.#describeAgain();
  }

  /** Ends the prepared version. */
  dismiss(): void {
    const started = this.#held?.started;
    this.#held = undefined;
    if (started) this.#old.leave(started);
  }

  #made(offered: OfferedVersion, manifest: Manifest): Started {
    const place = offered.folder === undefined ? this.place : { ...this.place, folder: offered.folder };
    return { ...offered, runtime: this.#make(place, offered.version, manifest) };
  }

  /** Returns the fixed port of a version, if it has one, and whether an older version uses the port. */
  #portOf({ server }: Manifest): { port: number; portInUse: true } | { port: number | undefined; portInUse: false } {
    const port = server?.port;
    if (port === undefined) return { port, portInUse: false };
    const portInUse = this.#current?.manifest?.server?.port === port || this.#old.usesPort(port);
    return { port, portInUse };
  }

  /** Starts a version after the old version has left their common port. Calls wait until the new version is ready. */
  async #startInTurn(started: Started, port: number): Promise<void> {
    this.#logger.info({ ...this.#names(started), port }, 'waiting for the old version to leave the port');
    for (const old of this.#old.retiring) if (old.manifest?.server?.port === port) this.#emptied(old);
    await this.#old.portFree(port);
    if (this.#current === started && !this.#closed) this.#start(started);
  }

  /**
   * Starts a run on a version, or on the serving version if this worker no longer has the version. The run keeps the limits of its version.
   *
   * @param named the version that was active when the run was accepted. Absent: the serving version.
   * @throws ServiceError `unavailable` if no version serves
   */
  run(request: RunRequest, listener: RunListener, named?: string): StartedRun {
    const started = this.#startedOf(named);
    const { runtime, version, manifest } = started ?? {};
    if (!runtime || version === undefined || manifest === undefined)
      throw new ServiceError('unavailable', `No version of the app \`${this.place.app}\` can run now; call again.`);
    const held = this.#held;
    const heard = held && started === held.started ? held.tally.counting(listener) : listener;
    return { running: runtime.run(request, heard), version, limits: manifest };
  }

  describe(): AppDescription {
    return describeApp(this.place.app, this.#current, {
      deployed: this.#isDeployed,
      waiting: this.#waiting,
      failed: this.#failed,
    });
  }

  /** Returns the processes of the serving version. */
  get replicas(): ReplicaCounts {
    return this.#current?.runtime?.replicas ?? { ready: 0, desired: 0 };
  }

  /** Waits for the runs of all versions until `signal` fires, then ends their processes. Resolves when all processes have ended. */
  async drain(signal?: AbortSignal): Promise<void> {
    this.#closed = true;
    this.#decided.resolve();
    this.dismiss();
    for (const started of [this.#next, this.#current]) if (started) this.#old.leave(started);
    this.#next = undefined;
    this.#current = undefined;
    await this.#old.drain(signal);
  }

  #start(started: Started): void {
    const { runtime } = started;
    const isCurrent = started === this.#current;
    this.#logger.info(this.#names(started), isCurrent ? 'starting' : 'starting beside the old version');
    runtime?.onChange(() => this.#changed(started));
    runtime?.onReplicas(() => {
      if (started === this.#current && !this.#closed) this.#describeAgain();
    });
    if (started === this.#held?.started) runtime?.onStartLines(this.#held.printed);
    runtime?.start();
  }

  /** Handles a change of the state, functions or error of `started`. */
  #changed(started: Started): void {
    const state = started.runtime?.state;
    if (this.#old.isRetiring(started)) {
      if (state === 'broken') this.#emptied(started);
    } else if (started === this.#held?.started) {
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
    this.#old.leave(next);
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
    if (old) this.#retire(old);
    this.#describeAgain();
  }

  /** Returns whether the app's versions come from the bundle store. Each of these versions has a folder. */
  get #isDeployed(): boolean {
    return this.place.folder === '';
  }

  /** Returns the versions of a deployed app that are or may become active, and have a started runtime. */
  #having(): Started[] {
    const held = this.#held?.started;
    const having = this.#current?.runtime ? [this.#current] : [];
    // The queue of a prepared version has runs only after its activation, which this worker may not have heard of yet.
    if (held?.runtime?.state === 'ready') having.push(held);
    return having;
  }

  #queue({ version, runtime }: Started): OpenQueue {
    const { app } = this.place;
    return { app, queue: queueOf(app, version), slots: runtime?.freeSlots ?? 0, version };
  }

  #startedOf(named: string | undefined): Started | undefined {
    if (named === undefined || named === this.#current?.version) return this.#current;
    const held = this.#held?.started;
    const other = held?.version === named && held.runtime?.state === 'ready' ? held : this.#old.retired(named);
    return other ?? this.#current;
  }

  /** Lets a replaced version take the runs that are left in its queue. A version without a queue of its own leaves at once. */
  #retire(old: Started): void {
    const port = old.manifest?.server?.port;
    const blocks =
      old.version === this.#current?.version || (port !== undefined && port === this.#current?.manifest?.server?.port);
    if (this.#isDeployed && old.runtime?.state === 'ready' && !blocks && !this.#closed) this.#old.retire(old);
    else this.#old.leave(old);
  }

  /** Ends a replaced version. Its queue is empty, or the store moves its runs to the active version. */
  #emptied(started: Started): void {
    if (this.#old.emptied(started)) this.#describeAgain();
  }

  #names({ version }: { version: string }): object {
    return { project: this.place.project, app: this.place.app, version };
  }
}
