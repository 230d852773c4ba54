// Contract 6, "Settings": finds apps in `<DEPLOYMENTS_DIR>/<project_id>/<app_name>/`. `WORKER_APPS` selects the apps that this worker serves.
import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isAppName, isProjectName, MANIFEST_FILES } from '@inference-proxy/contracts';
import { findEntryPoint } from './entry-point.ts';
import { isToolsFolder } from './version.ts';

/** The place of an app on disk. */
export interface AppFolder {
  readonly project: string;
  readonly app: string;
  /** Absolute path. */
  readonly folder: string;
}

/** The result of a scan of the deployments folder. */
export interface FoundApps {
  readonly apps: readonly AppFolder[];
  /** Folders in an app's place that directly hold files, but neither a manifest nor an entry point. */
  readonly withoutEntry: readonly AppFolder[];
  /** Folders with an app whose name no call can contain, relative to the deployments folder. */
  readonly misnamed: readonly string[];
  /** Folders whose content decides which apps exist. The worker watches these folders. */
  readonly places: readonly string[];
}

/** Returns whether this worker serves an app. */
export type AppFilter = (project: string, app: string) => boolean;

/** Returns whether a name matches a pattern, in which `*` is any text. Each part takes its first match, so the time is linear. */
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
 * Reads `WORKER_APPS`: patterns `project/app` with `*`, separated by commas, such as `acme/*,demo/chat`. An empty text selects all apps.
 *
 * @throws Error that names the invalid pattern
 */
export function appFilter(patterns: string): AppFilter {
  const pairs = patterns
    .split(',')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '')
    .map((pattern) => {
      const [project, app, ...rest] = pattern.split('/');
      if (!project || !app || rest.length > 0) throw new Error(`${pattern}: expected project/app, where * is any text`);
      return { project, app };
    });
  if (pairs.length === 0) return () => true;
  return (project, app) => pairs.some((pair) => matches(pair.project, project) && matches(pair.app, app));
}

/** Returns the names of the folders in `path`, with links to folders. A missing path has no folders. */
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

/** Returns whether a folder directly contains a file. An empty folder may be about to be filled. */
const holdsFiles = async (folder: string): Promise<boolean> =>
  (await readdir(folder, { withFileTypes: true }).catch(() => [])).some(
    (entry) => !isToolsFolder(entry.name) && !entry.isDirectory(),
  );

async function holdsApp(folder: string): Promise<boolean> {
  for (const name of MANIFEST_FILES) {
    const found = await stat(join(folder, name)).catch(() => undefined);
    if (found?.isFile()) return true;
  }
  return (await findEntryPoint(folder)) !== undefined;
}

/** Finds apps: folders with a manifest or an entry point. Folders without these files are listed separately. */
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
