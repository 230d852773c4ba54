// Contract 7: bounds the disk of folders on this worker. The folders that were not used for the longest time go first. Folders in use stay.
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Runtime } from '../runtimes/runtime.ts';

/** A folder that was handed out may be built for this time before its processes start, ms. */
const BUILD_MS = 3_600_000;
const BLOCK_BYTES = 512;

export interface BoundedFoldersOptions {
  readonly maxBytes: number;
  /** Name of the setting with that limit. */
  readonly setting: string;
  /** Removes a folder, unless `isInUse` returns true at the moment of the removal. Returns whether the folder was removed. */
  readonly remove: (folder: string, isInUse: () => boolean) => Promise<boolean>;
  readonly logger: { info(fields: object, text: string): void; warn(fields: object, text: string): void };
}

/** The use of a folder by this worker. */
interface Use {
  bytes: number;
  /** Unix ms. */
  usedAt: number;
  /** Time of handing out, until a runtime is made for the folder. */
  handedOutAt: number;
  readonly runtimes: Set<Pick<Runtime, 'state'>>;
}

export class BoundedFolders {
  readonly #options: BoundedFoldersOptions;
  readonly #uses = new Map<string, Use>();
  #trimming: Promise<void> = Promise.resolve();

  constructor(options: BoundedFoldersOptions) {
    this.#options = options;
  }

  /** Adds a folder of an earlier process. @param usedAt time of its last use, Unix ms */
  found(folder: string, usedAt: number, bytes: number): void {
    const use = this.#useOf(folder);
    // The folder may have been handed out during its measuring.
    use.usedAt = Math.max(use.usedAt, usedAt);
    use.bytes = bytes;
  }

  /** Keeps a folder until a runtime is made for it, at most for the time of a build. */
  handedOut(folder: string): void {
    const use = this.#useOf(folder);
    use.handedOutAt = Date.now();
    use.usedAt = use.handedOutAt;
  }

  /** Keeps a folder until its runtime has closed. An unknown folder is ignored. */
  keep(folder: string, runtime: Pick<Runtime, 'state'>): void {
    const use = this.#uses.get(folder);
    if (!use) return;
    use.handedOutAt = 0;
    use.runtimes.add(runtime);
  }

  /** Measures a new folder. Then removes folders that were not used for the longest time, until all folders fit into the limit. */
  async grew(folder: string): Promise<void> {
    this.#useOf(folder).bytes = await diskBytes(folder);
    this.#trimming = this.#trimming.then(() => this.#trim());
    await this.#trimming;
  }

  #useOf(folder: string): Use {
    const use = this.#uses.get(folder) ?? { bytes: 0, usedAt: 0, handedOutAt: 0, runtimes: new Set() };
    this.#uses.set(folder, use);
    return use;
  }

  async #trim(): Promise<void> {
    const { maxBytes, setting, remove, logger } = this.#options;
    let total = 0;
    for (const use of this.#uses.values()) {
      total += use.bytes;
      if (isInUse(use)) use.usedAt = Date.now();
    }
    const oldestFirst = [...this.#uses].sort(([, one], [, other]) => one.usedAt - other.usedAt);
    for (const [folder, use] of oldestFirst) {
      if (total <= maxBytes) return;
      if (isInUse(use) || !(await this.#removed(folder, use, remove))) continue;
      total -= use.bytes;
      logger.info({ folder, bytes: use.bytes, setting }, 'removed a folder that was not used for the longest time');
    }
    if (total > maxBytes) logger.warn({ bytes: total, maxBytes }, `the folders in use need more disk than ${setting}`);
  }

  async #removed(folder: string, use: Use, remove: BoundedFoldersOptions['remove']): Promise<boolean> {
    try {
      if (!(await remove(folder, () => isInUse(use)))) return false;
    } catch (err) {
      this.#options.logger.warn({ err, folder }, 'a folder could not be removed; it still counts');
      return false;
    }
    this.#uses.delete(folder);
    return true;
  }
}

function isInUse({ runtimes, handedOutAt }: Use): boolean {
  for (const runtime of runtimes) if (runtime.state === 'closed') runtimes.delete(runtime);
  return runtimes.size > 0 || handedOutAt > Date.now() - BUILD_MS;
}

/** Returns the bytes on disk of all files below a folder. Links are not followed. */
export async function diskBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
    // The app may remove a file at any time.
    const { blocks = 0 } = (await lstat(join(entry.parentPath, entry.name)).catch(() => undefined)) ?? {};
    bytes += blocks * BLOCK_BYTES;
  }
  return bytes;
}
