// Contract 6: `<DEPLOYMENTS_DIR>/<project_id>/<app_name>/` holds an app; `WORKER_APPS` says which of them this worker serves.
import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isAppName, isProjectName } from '@inference-proxy/contracts';
import { DEFAULT_ENTRYPOINT, MANIFEST_FILES } from './manifest.ts';
import { isToolsFolder } from './version.ts';

/** One app's place on disk. */
export interface AppFolder {
  readonly project: string;
  readonly app: string;
  /** Absolute path. */
  readonly folder: string;
}

/** What a look at the deployments folder found. */
export interface FoundApps {
  readonly apps: readonly AppFolder[];
  /** Folders in an app's place that directly hold files, but neither a manifest nor a `main.py`. */
  readonly withoutEntry: readonly AppFolder[];
  /** Folders that hold an app under a name that no call could reach, relative to the deployments folder. */
  readonly misnamed: readonly string[];
  /** Folders whose content decides which apps there are: worth watching. */
  readonly places: readonly string[];
}

/** Says whether this worker serves an app. */
export type AppFilter = (project: string, app: string) => boolean;

/** Whether a name matches a pattern, in which `*` is any text. Takes the first place where each part fits, so the time is linear. */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  const last = parts.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - at >= last.length && name.endsWith(last);
}

/**
 * Reads `WORKER_APPS`: patterns `project/app` with `*`, separated by commas, as `acme/*,demo/chat`; empty is all.
 *
 * @throws Error naming the pattern that is not one
 */
export function appFilter(patterns: string): AppFilter {
  const pairs = patterns
    .split(',')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '')
    .map((pattern) => {
      const [project, app, ...rest] = pattern.split('/');
      if (!project || !app || rest.length > 0) throw new Error(`${pattern}: expected project/app, * for any`);
      return { project, app };
    });
  if (pairs.length === 0) return () => true;
  return (project, app) => pairs.some((pair) => matches(pair.project, project) && matches(pair.app, app));
}

/** Names of the folders in `path`; links to folders count. A path that is not there holds none. */
async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  const names: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith('.') || entry.name === '__pycache__') continue;
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await isFolder(join(path, entry.name)))))
      names.push(entry.name);
  }
  return names.sort();
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** Returns whether a folder directly holds a file. An empty folder may be one that is just being filled. */
const holdsFiles = async (folder: string): Promise<boolean> =>
  (await readdir(folder, { withFileTypes: true }).catch(() => [])).some(
    (entry) => !isToolsFolder(entry.name) && !entry.isDirectory(),
  );

async function holdsApp(folder: string): Promise<boolean> {
  for (const name of [...MANIFEST_FILES, DEFAULT_ENTRYPOINT]) {
    const found = await stat(join(folder, name)).catch(() => undefined);
    if (found?.isFile()) return true;
  }
  return false;
}

/** Looks for apps: folders that hold a manifest or a `main.py`. Folders that hold neither are listed apart. */
export async function findApps(deploymentsDir: string, serves: AppFilter): Promise<FoundApps> {
  const root = resolve(deploymentsDir);
  const apps: AppFolder[] = [];
  const withoutEntry: AppFolder[] = [];
  const misnamed: string[] = [];
  const places = [root];
  for (const project of await foldersIn(root)) {
    places.push(join(root, project));
    for (const app of await foldersIn(join(root, project))) {
      const folder = join(root, project, app);
      places.push(folder);
      if (!serves(project, app)) continue;
      const isNamed = isProjectName(project) && isAppName(app);
      if (await holdsApp(folder)) {
        if (isNamed) apps.push({ project, app, folder });
        else misnamed.push(`${project}/${app}`);
      } else if (isNamed && (await holdsFiles(folder))) withoutEntry.push({ project, app, folder });
    }
  }
  return { apps, withoutEntry, misnamed, places };
}
