// Contract 7, "Dependencies": the environments on this worker's disk. Each is in a folder `<key>.<attempt>`, and a link `<key>` names the
// folder of a complete environment. A build that was killed therefore leaves nothing that counts as built, and no folder is ever moved,
// because the programs of a virtual environment contain its path.
import { randomBytes } from 'node:crypto';
import { lstat, lutimes, mkdir, readdir, readlink, realpath, rename, rm, symlink } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
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

/** An environment that no version has used for this time is removed at the next start of the worker, ms. */
const UNUSED_MS = 30 * 24 * 3_600_000;

export class EnvironmentCache {
  readonly #folder: string;
  readonly #builds = new Map<string, SharedBuild>();
  readonly #turns = new BuildTurns();
  #cleaned: Promise<void> | undefined;

  constructor(folder: string) {
    this.#folder = resolve(folder);
  }

  /** Returns the folder of the environment. Builds it if it does not exist. @throws BuildFailed; the reason of `signal` */
  async obtain(wanted: WantedEnvironment, log: BuildLog, signal: AbortSignal): Promise<string> {
    this.#cleaned ??= this.#clean().catch((error: unknown) => {
      this.#cleaned = undefined; // the disk may be writable later
      throw error;
    });
    await this.#cleaned;
    const { key } = wanted;
    const found = await this.#find(key);
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
    return realpath(link).catch(() => undefined);
  }

  async #build({ key, project, build }: WantedEnvironment, log: BuildLog, stopped: AbortSignal): Promise<string> {
    const endTurn = await this.#turns.take(project, stopped);
    const folder = join(this.#folder, `${key}.${randomBytes(4).toString('hex')}`);
    try {
      await mkdir(folder, { recursive: true });
      await build(folder, log, stopped);
      await symlink(basename(folder), `${folder}.link`);
      await rename(`${folder}.link`, join(this.#folder, key));
      return await realpath(folder);
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
    const complete = new Set<string>();
    const entries = await readdir(this.#folder, { withFileTypes: true });
    for (const entry of entries) {
      const path = join(this.#folder, entry.name);
      if (!entry.isSymbolicLink() || entry.name.includes('.')) continue;
      if ((await lstat(path)).mtimeMs < Date.now() - UNUSED_MS) await rm(path);
      else complete.add(await readlink(path));
    }
    for (const { name } of entries) {
      if (!name.includes('.') || complete.has(name)) continue;
      // A program of a build may end a moment later than its worker, and still write. The next start removes its folder.
      await rm(join(this.#folder, name), { recursive: true, force: true }).catch(() => {});
    }
  }
}
