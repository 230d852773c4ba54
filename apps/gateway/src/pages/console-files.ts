// Contract 6: the files of `GET /console`, which the build of apps/console writes.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FilePlace, PageFiles, TYPES } from './page-files.ts';

const BUILT = fileURLToPath(new URL('../../../console/dist/', import.meta.url));
/** The names that the build gives: a name below `assets/` contains a hash of its bytes. No name leaves the folder. */
const ASSET = /^assets\/[\w-][\w.-]*\.([a-z0-9]{1,5})$/;

/** The page itself. */
export const INDEX = 'index.html';

function placeIn(folder: string, name: string): FilePlace | undefined {
  if (name === INDEX) return { type: TYPES.html, path: join(folder, name) };
  const ending = ASSET.exec(name)?.[1] ?? '';
  if (!Object.hasOwn(TYPES, ending)) return undefined;
  return { type: TYPES[ending as keyof typeof TYPES], path: join(folder, name) };
}

export class ConsoleFiles extends PageFiles {
  /** @param isOn false: `CONSOLE=false` removes the page */
  constructor(isOn: boolean, folder: string = BUILT) {
    super((name) => (isOn ? placeIn(folder, name) : undefined));
  }
}
