// Contract 7: the unpacked versions on this worker's disk: `<BUNDLE_CACHE_DIR>/<project>/<app>/<version>/`.
// Each app has folders of its own, because a function may write into its folder.
import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type BundleStore, unpackBundle } from '@inference-proxy/bundles';

/** A version of an app, and its bundle. */
export interface CachedVersion {
  readonly project: string;
  readonly app: string;
  readonly version: string;
  /** SHA-256 of the archive. */
  readonly digest: string;
}

export class BundleCache {
  readonly #folder: string;
  readonly #store: BundleStore;
  /** Fetches under way, by folder. */
  readonly #fetches = new Map<string, Promise<void>>();

  constructor(folder: string, store: BundleStore) {
    this.#folder = resolve(folder);
    this.#store = store;
  }

  /**
   * Returns the folder of a version. Fetches, verifies and unpacks the bundle if the folder does not exist.
   *
   * @throws the errors of the bundle store, of the file system, and of a bundle that breaks a rule
   */
  async folderOf(wanted: CachedVersion): Promise<string> {
    const folder = join(this.#folder, wanted.project, wanted.app, wanted.version);
    const fetch = this.#fetches.get(folder) ?? this.#fetch(folder, wanted.digest);
    this.#fetches.set(folder, fetch);
    await fetch.finally(() => this.#fetches.delete(folder));
    return folder;
  }

  async #fetch(folder: string, digest: string): Promise<void> {
    if (await stat(folder).catch(() => undefined)) return;
    await mkdir(join(folder, '..'), { recursive: true });
    // A folder with the final name is always complete. A crash leaves a folder with another name.
    const partial = `${folder}.${randomBytes(4).toString('hex')}.partial`;
    try {
      await unpackBundle(await this.#store.get(digest), partial);
      await rename(partial, folder);
    } catch (error) {
      await rm(partial, { recursive: true, force: true });
      throw error;
    }
  }
}
