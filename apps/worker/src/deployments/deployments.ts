// Contract 7: the apps of the deployments folder that this worker serves. A change starts a scan; only one scan runs at a time.

import { MANIFEST_FILES, NODE_ENTRYPOINTS, PYTHON_ENTRYPOINT } from '@inference-proxy/contracts';
import { type AppFilter, type AppFolder, findApps } from './app-folders.ts';
import { keysOf } from './build-keys.ts';
import { ManifestError, readManifest } from './manifest.ts';
import type { MakeRuntime, OfferedVersion } from './offered-version.ts';
import { readTree, versionOf } from './version.ts';
import { AppVersions } from './versions.ts';
import { CodeWatch } from './watch.ts';

interface DeploymentsLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface DeploymentsOptions {
  readonly deploymentsDir: string;
  readonly serves: AppFilter;
  readonly rescanMs: number;
  readonly maxOutputBytes: number;
  readonly makeRuntime: MakeRuntime;
  readonly logger: DeploymentsLogger;
}

/** Reports a new app, a changed description, or a removed app. `find` returns undefined for a removed app. */
export type AppChanged = (project: string, app: string) => void;

/** The content of a version, without the version's name. */
type Content = Omit<OfferedVersion, 'version'>;
type ReadVersion = (place: AppFolder) => Promise<Content>;

/** The result of a look at an app. */
interface Look {
  /** Folders to watch. */
  readonly folders: readonly string[];
  /** Starts the app's code, if the code changed. */
  readonly offer: () => void;
}

const NO_ENTRY = `the folder has no entry point: expected ${[PYTHON_ENTRYPOINT, ...NODE_ENTRYPOINTS, ...MANIFEST_FILES].join(', ')}`;
const NOTHING_TO_RUN: Content = {
  manifest: undefined,
  error: { code: 'app_failed_to_start', message: NO_ENTRY },
};

interface Deployed {
  readonly versions: AppVersions;
  /** The signature of the code that was offered last; undefined before the first look. */
  signature: string | undefined;
}

export class Deployments {
  readonly #apps = new Map<string, Deployed>();
  #byProject = new Map<string, AppVersions[]>();
  /** Apps without a folder whose last runs continue. */
  readonly #gone = new Set<Deployed>();
  /** Folders that were reported as ignored. */
  readonly #leftOut = new Set<string>();
  #changed: AppChanged | undefined;
  #watch: CodeWatch | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #closed = false;

  readonly #options: DeploymentsOptions;

  constructor(options: DeploymentsOptions) {
    this.#options = options;
  }

  /** Resolves when the folder was scanned and the first start of every app has succeeded or failed. */
  async start(changed: AppChanged): Promise<void> {
    const { logger, rescanMs, deploymentsDir } = this.#options;
    this.#changed = changed;
    this.#watch = new CodeWatch(() => this.#look(), rescanMs, logger);
    this.#look();
    await this.#looking;
    if (this.#apps.size === 0) logger.warn({ deploymentsDir }, 'the deployments folder contains no apps');
    await Promise.all([...this.#apps.values()].map(({ versions }) => versions.firstStart));
  }

  /** Resolves when the scan under way has ended. */
  async scanned(): Promise<void> {
    await this.#looking;
  }

  /** Returns the number of apps. */
  get size(): number {
    return this.#apps.size;
  }

  projects(): readonly string[] {
    return [...this.#byProject.keys()];
  }

  /** Called whenever a slot becomes free, so the list is kept ready. */
  appsOf(project: string): readonly AppVersions[] {
    return this.#byProject.get(project) ?? [];
  }

  find(project: string, app: string): AppVersions | undefined {
    return this.#apps.get(`${project}/${app}`)?.versions;
  }

  /** Stops scanning. Started apps stay. */
  async stop(): Promise<void> {
    this.#closed = true;
    this.#watch?.close();
    await this.#looking;
  }

  /** Ends all processes. They end in order until `signal` fires. */
  async drain(signal: AbortSignal): Promise<void> {
    await this.stop();
    await Promise.all([...this.#apps.values(), ...this.#gone].map(({ versions }) => versions.drain(signal)));
  }

  #look(): void {
    this.#lookAgain = true;
    this.#looking ??= this.#lookUntilSettled().finally(() => {
      this.#looking = undefined;
    });
  }

  async #lookUntilSettled(): Promise<void> {
    while (this.#lookAgain && !this.#closed) {
      this.#lookAgain = false;
      try {
        await this.#lookOnce();
      } catch (err) {
        this.#options.logger.error({ err }, 'reading the deployments folder failed; retrying');
      }
    }
  }

  async #lookOnce(): Promise<void> {
    const { deploymentsDir, serves } = this.#options;
    const found = await findApps(deploymentsDir, serves);
    for (const name of found.misnamed)
      this.#leaveOut('warn', name, 'folder ignored: no call can contain this app name');
    const projects = new Set(found.apps.map(({ project }) => project));
    // A folder without an app may be no project, such as the webhook receivers beside the examples.
    const isApp = ({ project, app }: AppFolder) => projects.has(project) || this.#apps.has(`${project}/${app}`);
    const entryless = found.withoutEntry.filter(isApp);
    for (const place of found.withoutEntry)
      this.#leaveOut(isApp(place) ? 'warn' : 'info', `${place.project}/${place.app}`, `folder ignored: ${NO_ENTRY}`);
    const folders = [...found.places];
    const looks = [
      ...(await this.#lookAtAll(found.apps, (place) => this.#read(place))),
      ...(await this.#lookAtAll(entryless, async () => NOTHING_TO_RUN)),
    ];
    if (this.#closed) return;
    // All versions are offered in one step: each app has reserved its port before the first process starts.
    for (const { offer } of looks) offer();
    for (const look of looks) folders.push(...look.folders);
    this.#watch?.follow(folders);
    const present = new Set([...found.apps, ...entryless].map(({ project, app }) => `${project}/${app}`));
    for (const [name, deployed] of this.#apps) if (!present.has(name)) this.#remove(name, deployed);
  }

  #leaveOut(level: 'info' | 'warn', folder: string, why: string): void {
    if (!this.#leftOut.has(folder)) this.#options.logger[level]({ folder }, why);
    this.#leftOut.add(folder);
  }

  async #lookAtAll(places: readonly AppFolder[], read: ReadVersion): Promise<Look[]> {
    const looks: Look[] = [];
    for (const place of places) looks.push(await this.#lookAt(place, read));
    return looks;
  }

  async #lookAt(place: AppFolder, read: ReadVersion): Promise<Look> {
    const { project, app, folder } = place;
    try {
      const tree = await readTree(folder);
      const { folders, signature } = tree;
      if (this.#apps.get(`${project}/${app}`)?.signature === signature) return { folders, offer: () => undefined };
      const version = await versionOf(folder, tree);
      const offered = { version, ...(await read(place)) };
      const offer = (): void => {
        const deployed = this.#apps.get(`${project}/${app}`) ?? this.#add(place);
        deployed.signature = signature;
        deployed.versions.offer(offered);
      };
      return { folders, offer };
    } catch (err) {
      // Files may disappear during the read. Their removal starts another look.
      this.#options.logger.warn({ err, project, app }, 'reading the code of the app failed; retrying');
      return { folders: [folder], offer: () => undefined };
    }
  }

  async #read(place: AppFolder): Promise<Content> {
    const { logger, maxOutputBytes } = this.#options;
    const { project, app, folder } = place;
    try {
      const { manifest, build, unknown, ...read } = await readManifest(folder, maxOutputBytes);
      const unused = [...read.unused, ...keysOf(build)];
      if (unknown.length > 0) logger.warn({ project, app, unknown, unused }, 'manifest has unknown keys');
      else if (unused.length > 0) logger.info({ project, app, unused }, 'manifest has keys without effect');
      return { manifest };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      return { manifest: undefined, error: { code: 'app_failed_to_start', message: error.message } };
    }
  }

  #add(place: AppFolder): Deployed {
    const { project, app } = place;
    const { makeRuntime, logger } = this.#options;
    const versions = new AppVersions(place, makeRuntime, () => this.#changed?.(project, app), logger);
    const deployed: Deployed = { versions, signature: undefined };
    this.#apps.set(`${project}/${app}`, deployed);
    this.#group();
    return deployed;
  }

  #group(): void {
    this.#byProject = Map.groupBy(
      [...this.#apps.values()].map(({ versions }) => versions),
      ({ place }) => place.project,
    );
  }

  #remove(name: string, deployed: Deployed): void {
    const { place } = deployed.versions;
    this.#options.logger.info({ project: place.project, app: place.app }, 'app folder removed; the app ends its runs');
    this.#apps.delete(name);
    this.#group();
    this.#gone.add(deployed);
    void deployed.versions.drain().then(() => this.#gone.delete(deployed));
    this.#changed?.(place.project, place.app);
  }
}
