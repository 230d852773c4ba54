// Contract 7: the unpacked versions on this worker's disk: `<BUNDLE_CACHE_DIR>/<project>/<app>/<version>/`.
// Each app has folders of its own, because a function may write into its folder.
import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type BundleStore, unpackBundle } from '@inference-proxy/bundles';
import { BoundedFolders, type BoundedFoldersOptions, diskBytes } from '../disk/bounded-folders.ts';
import type { Runtime } from '../runtimes/runtime.ts';
import { cachedFolders } from './cached-folders.ts';

/** A version of an app, and its bundle. */
export interface CachedVersion {
  readonly project: string;
  readonly app: string;
  readonly version: string;
  /** SHA-256 of the archive. */
  readonly digest: string;
}

export interface BundleCacheOptions {
  /** `BUNDLE_CACHE_DIR`. */
  readonly folder: string;
  /** `BUNDLE_CACHE_MAX_BYTES`. */
  readonly maxBytes: number;
  readonly store: BundleStore;
  readonly logger: BoundedFoldersOptions['logger'];
}

export class BundleCache {
  readonly #options: BundleCacheOptions;
  readonly #folder: string;
  readonly #folders: BoundedFolders;
  /** Fetches and removals, one at a time for each folder. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** The search for the folders of an earlier process. */
  #found: Promise<void> | undefined;

  constructor(options: BundleCacheOptions) {
    const { folder, maxBytes, logger } = options;
    this.#options = options;
    this.#folder = resolve(folder);
    const remove = (path: string, isInUse: () => boolean): Promise<boolean> =>
      this.#inTurn(path, async () => {
        // The version may have been handed out while its turn came.
        if (isInUse()) return false;
        await rm(path, { recursive: true, force: true });
        return true;
      });
    this.#folders = new BoundedFolders({ maxBytes, setting: 'BUNDLE_CACHE_MAX_BYTES', remove, logger });
  }

  /**
   * Returns the folder of a version. Fetches, verifies and unpacks the bundle if the folder does not exist. Then removes versions that were
   * not used for the longest time, until all versions fit into the limit. Versions in use stay.
   *
   * @throws the errors of the bundle store, of the file system, and of a bundle that breaks a rule
   */
  async folderOf(wanted: CachedVersion): Promise<string> {
    const folder = join(this.#folder, wanted.project, wanted.app, wanted.version);
    this.#found ??= this.#find();
    await this.#found;
    this.#folders.handedOut(folder);
    if (await this.#inTurn(folder, () => this.#fetch(folder, wanted.digest))) await this.#folders.grew(folder);
    // A later process reads the time of the last use from the folder.
    await utimes(folder, new Date(), new Date()).catch(() => {});
    return folder;
  }

  /** Keeps a version until its runtime has closed. A folder of another place is ignored. */
  keep(folder: string, runtime: Pick<Runtime, 'state'>): void {
    this.#folders.keep(folder, runtime);
  }

  /** Returns whether the folder is new. */
  async #fetch(folder: string, digest: string): Promise<boolean> {
    if (await stat(folder).catch(() => undefined)) return false;
    await mkdir(join(folder, '..'), { recursive: true });
    // A folder with the final name is always complete. A crash leaves a folder with another name.
    const partial = `${folder}.${randomBytes(4).toString('hex')}.partial`;
    try {
      await unpackBundle(await this.#options.store.get(digest), partial);
      await rename(partial, folder);
    } catch (error) {
      await rm(partial, { recursive: true, force: true });
      throw error;
    }
    return true;
  }

  async #find(): Promise<void> {
    for (const { folder, usedAt } of await cachedFolders(this.#folder))
      this.#folders.found(folder, usedAt, await diskBytes(folder));
  }

  #inTurn<T>(folder: string, step: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(folder) ?? Promise.resolve();
    const turn = before.catch(() => {}).then(step);
    this.#turns.set(folder, turn);
    return turn.finally(() => {
      if (this.#turns.get(folder) === turn) this.#turns.delete(folder);
    });
  }
}
