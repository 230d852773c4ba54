// The apps this worker serves, as the deployments folder holds them now: looked at when something changed there, one look at a time.

import { type AppFilter, type AppFolder, findApps } from './app-folders.ts';
import { ManifestError, readManifest } from './manifest.ts';
import { readTree, versionOf } from './version.ts';
import { AppVersions, type MakeRuntime, type OfferedVersion } from './versions.ts';
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

/** What is told of the apps. */
export interface DeploymentsListener {
  /** An app's description has changed, or it is a new one, or (`find` no longer knows it) it is gone. */
  changed(project: string, app: string): void;
  /** Slots of an app may have become free. */
  freed(project: string): void;
}

interface Deployed {
  readonly versions: AppVersions;
  /** Of the code that was offered last; undefined before the first look. */
  signature: string | undefined;
}

export class Deployments {
  private readonly apps = new Map<string, Deployed>();
  private byProject = new Map<string, AppVersions[]>();
  /** Apps whose folder is gone and whose last runs are not. */
  private readonly gone = new Set<Deployed>();
  /** Told once each. */
  private readonly misnamed = new Set<string>();
  private listener: DeploymentsListener | undefined;
  private watch: CodeWatch | undefined;
  private looking: Promise<void> | undefined;
  private lookAgain = false;
  private closed = false;

  constructor(private readonly options: DeploymentsOptions) {}

  /** Resolves when the folder was looked at and every app's first start has succeeded or failed. */
  async start(listener: DeploymentsListener): Promise<void> {
    const { logger, rescanMs, deploymentsDir } = this.options;
    this.listener = listener;
    this.watch = new CodeWatch(() => this.look(), rescanMs, logger);
    this.look();
    await this.looking;
    if (this.apps.size === 0) logger.warn({ deploymentsDir }, 'no apps found');
    await Promise.all([...this.apps.values()].map(({ versions }) => versions.firstStart));
  }

  /** How many apps there are. */
  get size(): number {
    return this.apps.size;
  }

  projects(): readonly string[] {
    return [...this.byProject.keys()];
  }

  /** Read at every slot that becomes free, so kept ready. */
  appsOf(project: string): readonly AppVersions[] {
    return this.byProject.get(project) ?? [];
  }

  find(project: string, app: string): AppVersions | undefined {
    return this.apps.get(`${project}/${app}`)?.versions;
  }

  /** Looks no more; what was started stays. */
  async stop(): Promise<void> {
    this.closed = true;
    this.watch?.close();
    await this.looking;
  }

  /** Ends all processes, in order until `signal` fires. */
  async drain(signal: AbortSignal): Promise<void> {
    await this.stop();
    await Promise.all([...this.apps.values(), ...this.gone].map(({ versions }) => versions.drain(signal)));
  }

  private look(): void {
    this.lookAgain = true;
    this.looking ??= this.lookUntilSettled().finally(() => {
      this.looking = undefined;
    });
  }

  private async lookUntilSettled(): Promise<void> {
    while (this.lookAgain && !this.closed) {
      this.lookAgain = false;
      try {
        await this.lookOnce();
      } catch (err) {
        this.options.logger.error({ err }, 'deployments folder cannot be read, trying again');
      }
    }
  }

  private async lookOnce(): Promise<void> {
    const { deploymentsDir, serves, logger } = this.options;
    const found = await findApps(deploymentsDir, serves);
    for (const name of found.misnamed) {
      if (!this.misnamed.has(name)) logger.warn({ folder: name }, 'left out: no call could name this app');
      this.misnamed.add(name);
    }
    const folders = [...found.places];
    for (const place of found.apps) folders.push(...(await this.lookAt(place)));
    this.watch?.follow(this.closed ? [] : folders);
    const present = new Set(found.apps.map(({ project, app }) => `${project}/${app}`));
    for (const [name, deployed] of this.apps) if (!present.has(name)) this.remove(name, deployed);
  }

  /** Offers the app's code where it has changed. Returns its folders. */
  private async lookAt(place: AppFolder): Promise<readonly string[]> {
    const { project, app, folder } = place;
    try {
      const tree = await readTree(folder);
      const known = this.apps.get(`${project}/${app}`);
      if (known?.signature !== tree.signature) {
        const offered = await this.read(place, await versionOf(folder, tree));
        if (this.closed) return [];
        const deployed = known ?? this.add(place);
        deployed.signature = tree.signature;
        deployed.versions.offer(offered);
      }
      return tree.folders;
    } catch (err) {
      // Files that go away while they are read: the next look, told by their going, finds what is left.
      this.options.logger.warn({ err, project, app }, 'code cannot be read, trying again');
      return [folder];
    }
  }

  private async read(place: AppFolder, version: string): Promise<OfferedVersion> {
    const { logger, maxOutputBytes } = this.options;
    const { project, app, folder } = place;
    try {
      const { manifest, unused, unknown } = await readManifest(folder, maxOutputBytes);
      if (unknown.length > 0) logger.warn({ project, app, unknown, unused }, 'manifest has keys that nobody knows');
      else if (unused.length > 0) logger.info({ project, app, unused }, 'manifest has keys that are not used here');
      return { version, manifest };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      return { version, manifest: undefined, error: { code: 'app_failed_to_start', message: error.message } };
    }
  }

  private add(place: AppFolder): Deployed {
    const { project, app } = place;
    const { makeRuntime, logger } = this.options;
    const versions = new AppVersions(
      place,
      makeRuntime,
      { changed: () => this.listener?.changed(project, app), freed: () => this.listener?.freed(project) },
      logger,
    );
    const deployed: Deployed = { versions, signature: undefined };
    this.apps.set(`${project}/${app}`, deployed);
    this.group();
    return deployed;
  }

  private group(): void {
    this.byProject = Map.groupBy(
      [...this.apps.values()].map(({ versions }) => versions),
      ({ place }) => place.project,
    );
  }

  private remove(name: string, deployed: Deployed): void {
    const { place } = deployed.versions;
    this.options.logger.info({ project: place.project, app: place.app }, 'app is gone');
    this.apps.delete(name);
    this.group();
    this.gone.add(deployed);
    void deployed.versions.drain().then(() => this.gone.delete(deployed));
    this.listener?.changed(place.project, place.app);
  }
}
