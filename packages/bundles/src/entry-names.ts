// Contract 7, "Bundle rules": the rules for the names in a bundle. Every service that reads a bundle applies them, because the store may be shared.
import { ServiceError } from '@inference-proxy/contracts';

/** The longest name of a file on Linux, and the longest path, in bytes. */
const LONGEST_NAME = 255;
const LONGEST_PATH = 1024;
/** The longest part of a name in a message. */
const SHOWN = 100;

export const invalidBundle = (why: string, cause?: unknown): ServiceError =>
  new ServiceError('invalid_bundle', `The bundle is not valid: ${why}.`, cause === undefined ? {} : { cause });

/** Returns a name for a message: quoted, without control characters, and short. */
export const shown = (name: string): string => JSON.stringify(name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name);

/** Returns the form in which names that file systems may confuse are equal: letters of one case, and one Unicode normalisation. */
const folded = (name: string): string => name.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');

type Kind = 'file' | 'folder' | 'link';

/** The names of one bundle. Each added name is checked against the rules and against the earlier names. */
export class EntryNames {
  /** Kind by exact path. */
  readonly #kinds = new Map<string, Kind>();
  /** Exact path by folded path. */
  readonly #folded = new Map<string, string>();

  /**
   * Adds an entry and returns its path without a leading `./` and without a final slash. An empty path is the app's folder.
   *
   * @throws ServiceError `invalid_bundle`
   */
  add(raw: string, kind: Kind): string {
    const path = relativePath(raw);
    const names = path === '' ? [] : path.split('/');
    if (names.length === 0 && kind !== 'folder') throw invalidBundle(`${shown(raw)} has no name`);
    let parent = '';
    for (const [at, name] of names.entries()) {
      const isLast = at === names.length - 1;
      const own = parent === '' ? name : `${parent}/${name}`;
      this.#put(own, isLast ? kind : 'folder', !isLast);
      parent = own;
    }
    return path;
  }

  /** Returns whether an earlier entry is a file with this path. */
  hasFile(path: string): boolean {
    return this.#kinds.get(path) === 'file';
  }

  #put(path: string, kind: Kind, isParent: boolean): void {
    const known = this.#kinds.get(path);
    if (known !== undefined) {
      if (known === 'folder' && kind === 'folder') return;
      throw invalidBundle(
        isParent ? `${shown(path)} is not a folder, but has entries below` : `${shown(path)} occurs more than once`,
      );
    }
    const key = folded(path);
    const other = this.#folded.get(key);
    if (other !== undefined) {
      throw invalidBundle(`${shown(path)} and ${shown(other)} differ only in case or in Unicode normalisation`);
    }
    this.#kinds.set(path, kind);
    this.#folded.set(key, path);
  }
}

/** Returns the path of an entry without `./` and final slashes. @throws ServiceError `invalid_bundle` */
export function relativePath(raw: string): string {
  if (raw.includes('\0') || raw.includes('�')) throw invalidBundle(`${shown(raw)} is not a name in UTF-8`);
  if (raw.startsWith('/')) throw invalidBundle(`${shown(raw)} is an absolute path`);
  if (Buffer.byteLength(raw) > LONGEST_PATH) throw invalidBundle(`${shown(raw)} is longer than ${LONGEST_PATH} bytes`);
  const names = raw.split('/').filter((name) => name !== '' && name !== '.');
  if (names.includes('..')) throw invalidBundle(`${shown(raw)} contains ".."`);
  const long = names.find((name) => Buffer.byteLength(name) > LONGEST_NAME);
  if (long !== undefined) throw invalidBundle(`${shown(long)} is longer than ${LONGEST_NAME} bytes`);
  return names.join('/');
}

/**
 * Checks the target of a symbolic link. No entry is below a link, so the folder of the link is a real folder. The target goes up from there
 * at most to the app's folder, and only then down. Therefore every chain of such links stays inside.
 *
 * @throws ServiceError `invalid_bundle`
 */
export function checkLink(path: string, target: string): void {
  const leaves = (why: string) => invalidBundle(`the link ${shown(path)} ${why}`);
  if (target === '' || target.includes('\0') || target.includes('�')) throw leaves('has no target in UTF-8');
  if (target.startsWith('/')) throw leaves('has an absolute target');
  if (Buffer.byteLength(target) > LONGEST_PATH) throw leaves(`has a target of more than ${LONGEST_PATH} bytes`);
  const names = target.split('/').filter((name) => name !== '' && name !== '.');
  const ups = names.lastIndexOf('..') + 1;
  if (names.slice(0, ups).some((name) => name !== '..')) throw leaves('has ".." behind a name in its target');
  if (ups > path.split('/').length - 1) throw leaves("leaves the app's folder");
}
