// Where the development stack keeps things: everything it makes lives in one folder, so deleting that folder is a fresh start.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The repository's folder, found from this file whether it runs as source or from `dist`. */
export function projectRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package-lock.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package-lock.json above ${import.meta.dirname}`);
    folder = parent;
  }
  return folder;
}

/** The folder of what the stack makes: Redis' data, secrets, process ids, a downloaded Redis. Not in git. */
export const dataFolder = (): string => join(projectRoot(), '.data');
