// Contract 7: reads which versions an earlier process has unpacked.
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** The folder of a version. */
export interface CachedFolder {
  readonly folder: string;
  /** Time of the last change in the folder, Unix ms. */
  readonly usedAt: number;
}

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

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
