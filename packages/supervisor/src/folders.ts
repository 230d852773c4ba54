// The folders of the development stack. All files are in one folder. A stack without this folder starts fresh.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Returns the repository's folder, whether this file runs as source or from `dist`. */
export function projectRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package-lock.json'))) {
    const parent = dirname(folder);
    if (parent === folder)
      throw new Error(
        `no folder above ${import.meta.dirname} has a package-lock.json; run this file inside the repository`,
      );
    folder = parent;
  }
  return folder;
}

/** Returns the folder of the stack's files: Redis' data, secrets, process ids, a downloaded Redis. Git ignores it. */
export const dataFolder = (): string => join(projectRoot(), '.data');
