// Contract 7, "Dependencies": the environments on this worker's disk. Each is in a folder `<key>.<attempt>`, and a link `<key>` names the
// folder of a complete environment. A build that was killed therefore leaves nothing that counts as built, and no folder is ever moved,
// because the programs of a virtual environment contain its path.
import { randomBytes } from 'node:crypto';
import { lstat, lutimes, mkdir, readdir, readlink, realpath, rename, rm, symlink } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { BoundedFolders, type BoundedFoldersOptions, diskBytes } from '../disk/bounded-folders.ts';
import type { Runtime } from '../runtimes/runtime.ts';
import type { BuildLog } from './build-step.ts';
import { BuildTurns } from './build-turns.ts';
import { SharedBuild } from './shared-build.ts';

/** Builds an environment in an empty folder. @throws BuildFailed; the reason of `stopped` */
export type Build = (folder: string, log: BuildLog, stopped: AbortSignal) => Promise<void>;

export interface WantedEnvironment {
  /** Hex digits. Equal keys mean equal environments. */
  readonly key: string;
  /** Whose turn the build is. */
  readonly project: string;
  readonly build: Build;
}

export interface EnvironmentCacheOptions {
  readonly folder: string;
  /** `ENVIRONMENTS_MAX_BYTES`. */
  readonly maxBytes: number;
  readonly logger: BoundedFoldersOptions['logger'];
}

/** An environment that no version has used for this time is removed at the next start of the worker, ms. */
const UNUSED_MS = 30 * 24 * 3_600_000;

export class EnvironmentCache {
  readonly #folder: string;
  readonly #folders: BoundedFolders;
  readonly #builds = new Map<string, SharedBuild>();
  readonly #turns = new BuildTurns();
  #cleaned: Promise<void> | undefined;
  /** The measuring of the environments of an earlier process. */
  #measured: Promise<void> = Promise.resolve();
  /** Looks for environments and removals of their links, one at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ folder, maxBytes, logger }: EnvironmentCacheOptions) {
    this.#folder = resolve(folder);
    const remove: BoundedFoldersOptions['remove'] = (path, isInUse) => this.#remove(path, isInUse);
    this.#folders = new BoundedFolders({ maxBytes, setting: 'ENVIRONMENTS_MAX_BYTES', remove, logger });
  }

  /** Keeps an environment until a runtime that uses it has closed. */
  keep(folder: string, runtime: Pick<Runtime, 'state'>): void {
    this.#folders.keep(folder, runtime);
  }

  /** Returns the folder of the environment. Builds it if it does not exist. @throws BuildFailed; the reason of `signal` */
  async obtain(wanted: WantedEnvironment, log: BuildLog, signal: AbortSignal): Promise<string> {
    this.#cleaned ??= this.#clean().catch((error: unknown) => {
      this.#cleaned = undefined; // the disk may be writable later
      throw error;
    });
    await this.#cleaned;
    const { key } = wanted;
    const found = await this.#inTurn(() => this.#find(key));
    if (found !== undefined) {
      log(['the environment exists already']);
      return found;
    }
    let build = this.#builds.get(key);
    if (build === undefined || build.isStopped) {
      const own: SharedBuild = new SharedBuild((lines, stopped) =>
        this.#build(wanted, lines, stopped).finally(() => {
          if (this.#builds.get(key) === own) this.#builds.delete(key);
        }),
      );
      build = own;
      this.#builds.set(key, own);
    }
    return build.join(log, signal);
  }

  async #find(key: string): Promise<string | undefined> {
    const link = join(this.#folder, key);
    const now = new Date();
    // The time of the link is the time of the last use.
    await lutimes(link, now, now).catch(() => {});
    const found = await realpath(link).catch(() => undefined);
    if (found !== undefined) this.#folders.handedOut(found);
    return found;
  }

  /** Removes an environment that is not in use. Its link goes first, so that no version finds a part of an environment. */
  async #remove(folder: string, isInUse: () => boolean): Promise<boolean> {
    const isUnlinked = await this.#inTurn(async () => {
      if (isInUse()) return false;
      await rm(join(this.#folder, keyOf(folder)), { force: true });
      return true;
    });
    if (isUnlinked) await rm(folder, { recursive: true, force: true });
    return isUnlinked;
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(step);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #build({ key, project, build }: WantedEnvironment, log: BuildLog, stopped: AbortSignal): Promise<string> {
    const endTurn = await this.#turns.take(project, stopped);
    const folder = join(this.#folder, `${key}.${randomBytes(4).toString('hex')}`);
    try {
      await mkdir(folder, { recursive: true });
      await build(folder, log, stopped);
      await symlink(basename(folder), `${folder}.link`);
      await rename(`${folder}.link`, join(this.#folder, key));
      const built = await realpath(folder);
      this.#folders.handedOut(built);
      await this.#measured;
      await this.#folders.grew(built);
      return built;
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    } finally {
      endTurn();
    }
  }

  /** Removes unused environments and the folders of builds that never ended. Called before the first use by this process. */
  async #clean(): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    const complete = new Map<string, number>();
    const entries = await readdir(this.#folder, { withFileTypes: true });
    for (const entry of entries) {
      const path = join(this.#folder, entry.name);
      if (!entry.isSymbolicLink() || entry.name.includes('.')) continue;
      const { mtimeMs } = await lstat(path);
      if (mtimeMs < Date.now() - UNUSED_MS) await rm(path);
      else complete.set(await readlink(path), mtimeMs);
    }
    for (const { name } of entries) {
      if (!name.includes('.') || complete.has(name)) continue;
      // A program of a build may end a moment later than its worker, and still write. The next start removes its folder.
      await rm(join(this.#folder, name), { recursive: true, force: true }).catch(() => {});
    }
    // Measuring takes a second for a large environment. The first version does not wait for it.
    this.#measured = this.#measure(complete);
  }

  async #measure(complete: ReadonlyMap<string, number>): Promise<void> {
    for (const [name, usedAt] of complete) {
      const folder = await realpath(join(this.#folder, name)).catch(() => undefined);
      if (folder !== undefined) this.#folders.found(folder, usedAt, await diskBytes(folder));
    }
  }
}

/** Returns the key of the environment in a folder. */
const keyOf = (folder: string): string => basename(folder).split('.', 1)[0] as string;
