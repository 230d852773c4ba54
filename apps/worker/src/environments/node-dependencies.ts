// Contract 7, "Dependencies": the packages of a JavaScript app: `package.json`, the lockfile of npm, and `.npmrc`.
import { readFile } from 'node:fs/promises';
import { isAbsolute, join, normalize } from 'node:path';
import { asTable } from '../deployments/manifest-text.ts';
import { BuildFailed } from './build-failed.ts';

export interface NodeDependencies {
  /** Texts of the files that npm reads, by name. */
  readonly files: Readonly<Record<string, string>>;
  readonly hasLock: boolean;
  readonly packages: number;
  /** Whether a package is a folder or a file of the app. */
  readonly isLocal: boolean;
}

/** The keys of `package.json` that decide which packages npm installs. */
const KEYS = [
  'dependencies',
  'optionalDependencies',
  'devDependencies',
  'peerDependencies',
  'peerDependenciesMeta',
  'bundleDependencies',
  'overrides',
  'workspaces',
];
const LOCKS = ['npm-shrinkwrap.json', 'package-lock.json'];
const LARGEST_FILE = 16 * 2 ** 20;

/**
 * Returns the packages of an app, or undefined if the app names none.
 *
 * @throws BuildFailed if a file is not JSON, or names a path out of the app's folder
 */
export async function nodeDependencies(folder: string): Promise<NodeDependencies | undefined> {
  const manifest = await jsonIn(folder, 'package.json');
  if (manifest === undefined) return undefined;
  const kept = Object.fromEntries(KEYS.filter((key) => key in manifest).map((key) => [key, manifest[key]]));
  const specs = ['dependencies', 'optionalDependencies'].flatMap((key) => Object.values(asTable(kept[key]) ?? {}));
  if (specs.length === 0) return undefined;
  const files: Record<string, string> = { 'package.json': JSON.stringify(kept) };
  let isLocal = 'workspaces' in kept;
  const places = textsIn(kept.workspaces).map((place) => `file:${place}`);
  for (const spec of [...specs.map(String), ...textsIn(kept.overrides), ...places])
    if (isPathInside('package.json', spec)) isLocal = true;
  for (const name of LOCKS) {
    const lock = await jsonIn(folder, name);
    if (lock === undefined) continue;
    files[name] = JSON.stringify(lock);
    for (const [place, entry] of Object.entries(asTable(lock.packages) ?? {})) {
      const { resolved = '', link } = asTable(entry) ?? {};
      const isLink = link === true && isPathInside(name, `file:${resolved}`);
      if (isLink || isPathInside(name, String(resolved)) || isPathInside(name, `file:./${place}`, place))
        isLocal = true;
    }
    break;
  }
  const settings = await textIn(folder, '.npmrc');
  if (settings !== undefined) files['.npmrc'] = settings;
  const hasLock = LOCKS.some((name) => name in files);
  return { files, hasLock, packages: specs.length, isLocal };
}

/**
 * Returns whether npm reads a spec as a path.
 *
 * @param place a path of a lockfile. A path below `node_modules` is a place of an installed package.
 * @throws BuildFailed if the path leaves the app's folder
 */
function isPathInside(from: string, spec: string, place?: string): boolean {
  if (place !== undefined && (place === '' || /^node_modules\//.test(place)) && !place.split('/').includes('..'))
    return false;
  const path = /^(?:(?:git\+)?file:|link:)(.*)$/.exec(spec)?.[1] ?? (/^[./~]/.test(spec) ? spec : undefined);
  if (path === undefined) return false;
  const inside = normalize(path.replace(/^\/\/(?=\/)/, ''));
  if (isAbsolute(inside) || inside.startsWith('~') || inside === '..' || inside.startsWith('../'))
    throw new BuildFailed(`${from} names ${JSON.stringify(path)}: expected a path below the app's folder`);
  return true;
}

/** Returns all texts in a value of JSON. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

async function textIn(folder: string, name: string): Promise<string | undefined> {
  const bytes = await readFile(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new BuildFailed(`${name} cannot be read: ${error.code}`);
  });
  if (bytes !== undefined && bytes.length > LARGEST_FILE) throw new BuildFailed(`${name} is larger than 16 MiB`);
  return bytes?.toString('utf8');
}

async function jsonIn(folder: string, name: string): Promise<Record<string, unknown> | undefined> {
  const text = await textIn(folder, name);
  if (text === undefined) return undefined;
  try {
    const table = asTable(JSON.parse(text));
    if (table !== undefined) return table;
  } catch {
    // The reason of the parser may quote the file.
  }
  throw new BuildFailed(`${name} is not a JSON object`);
}
