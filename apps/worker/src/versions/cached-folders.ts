// Contract 7: reads which versions an earlier process has unpacked, and how much disk they need.
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** The folder of a version. */
export interface CachedFolder {
  readonly folder: string;
  /** Time of the last change in the folder, Unix ms. */
  readonly usedAt: number;
}

const BLOCK_BYTES = 512;

/** Returns the versions below `<root>/<project>/<app>/`. Removes folders that were not unpacked to the end. */
export async function cachedFolders(root: string): Promise<CachedFolder[]> {
  const found: CachedFolder[] = [];
  for (const project of await namesIn(root))
    for (const app of await namesIn(join(root, project)))
      for (const version of await namesIn(join(root, project, app))) {
        const folder = join(root, project, app, version);
        if (version.endsWith('.partial')) await rm(folder, { recursive: true, force: true });
        else found.push({ folder, usedAt: (await lstat(folder)).mtimeMs });
      }
  return found;
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

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
