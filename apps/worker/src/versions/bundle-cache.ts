// Contract 7: the unpacked versions on this worker's disk: `<BUNDLE_CACHE_DIR>/<project>/<app>/<version>/`.
// Each app has folders of its own, because a function may write into its folder.
import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type BundleStore, unpackBundle } from '@inference-proxy/bundles';
import type { Runtime } from '../runtimes/runtime.ts';
import { cachedFolders, diskBytes } from './cached-folders.ts';

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
  readonly logger: { info(fields: object, text: string): void; warn(fields: object, text: string): void };
}

/** A version that was handed out may be built for this time before its processes start, ms. */
const BUILD_MS = 3_600_000;

/** The use of a folder by this worker. */
interface Use {
  bytes: number;
  /** Unix ms. */
  usedAt: number;
  /** Time of handing out, until a runtime is made for the folder. */
  handedOutAt: number;
  readonly runtimes: Set<Pick<Runtime, 'state'>>;
}

export class BundleCache {
  readonly #options: BundleCacheOptions;
  readonly #folder: string;
  /** Fetches and removals, one at a time for each folder. */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #uses = new Map<string, Use>();
  /** The search for the folders of an earlier process. */
  #found: Promise<void> | undefined;
  #trimming: Promise<void> = Promise.resolve();

  constructor(options: BundleCacheOptions) {
    this.#options = options;
    this.#folder = resolve(options.folder);
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
    const use = this.#useOf(folder);
    use.handedOutAt = Date.now();
    if (await this.#inTurn(folder, () => this.#fetch(folder, wanted.digest))) {
      use.bytes = await diskBytes(folder);
      this.#trimming = this.#trimming.then(() => this.#trim());
      await this.#trimming;
    }
    use.usedAt = Date.now();
    // A later process reads the time of the last use from the folder.
    await utimes(folder, new Date(), new Date()).catch(() => {});
    return folder;
  }

  /** Keeps a version until its runtime has closed. A folder of another place is ignored. */
  keep(folder: string, runtime: Pick<Runtime, 'state'>): void {
    const use = this.#uses.get(folder);
    if (!use) return;
    use.handedOutAt = 0;
    use.runtimes.add(runtime);
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
    for (const { folder, usedAt } of await cachedFolders(this.#folder)) {
      const bytes = await diskBytes(folder);
      this.#uses.set(folder, { bytes, usedAt, handedOutAt: 0, runtimes: new Set() });
    }
  }

  #useOf(folder: string): Use {
    const use = this.#uses.get(folder) ?? { bytes: 0, usedAt: 0, handedOutAt: 0, runtimes: new Set() };
    this.#uses.set(folder, use);
    return use;
  }

  async #trim(): Promise<void> {
    const { maxBytes, logger } = this.#options;
    let total = 0;
    for (const use of this.#uses.values()) {
      total += use.bytes;
      if (isInUse(use)) use.usedAt = Date.now();
    }
    const oldestFirst = [...this.#uses].sort(([, one], [, other]) => one.usedAt - other.usedAt);
    for (const [folder, use] of oldestFirst) {
      if (total <= maxBytes) return;
      if (isInUse(use)) continue;
      await this.#inTurn(folder, async () => {
        // The version may have been handed out while its turn came.
        if (isInUse(use)) return;
        await rm(folder, { recursive: true, force: true });
        total -= use.bytes;
        this.#uses.delete(folder);
        logger.info({ folder, bytes: use.bytes }, 'removed an unpacked version that was not used for the longest time');
      });
    }
    if (total > maxBytes)
      logger.warn({ bytes: total, maxBytes }, 'the versions in use need more disk than BUNDLE_CACHE_MAX_BYTES');
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

function isInUse({ runtimes, handedOutAt }: Use): boolean {
  for (const runtime of runtimes) if (runtime.state === 'closed') runtimes.delete(runtime);
  return runtimes.size > 0 || handedOutAt > Date.now() - BUILD_MS;
}
