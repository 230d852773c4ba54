// Contract 7: the deployed apps that this worker serves. A message or a silence starts a look; only one look runs at a time.
import { atIntervals } from '@inference-proxy/retry';
import type { Deployment, DeploymentFeed } from '@inference-proxy/store';
import type { AppFilter } from '../deployments/app-folders.ts';
import type { AppChanged } from '../deployments/deployments.ts';
import type { MakeRuntime } from '../deployments/offered-version.ts';
import { AppVersions } from '../deployments/versions.ts';
import type { ServedApps } from '../execution/serving.ts';
import { DeployedApp } from './deployed-app.ts';
import type { VersionLoader } from './version-loader.ts';

interface DeployedAppsLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface DeployedAppsOptions {
  readonly feed: DeploymentFeed;
  readonly loader: VersionLoader;
  readonly serves: AppFilter;
  /** Returns whether a folder holds the app. Such an app is not served from versions. */
  readonly isInFolder: (project: string, app: string) => boolean;
  /** Time between two looks without a message, ms. */
  readonly lookMs: number;
  readonly makeRuntime: MakeRuntime;
  readonly logger: DeployedAppsLogger;
}

const ALL = Symbol('all projects');

export class DeployedApps implements ServedApps {
  readonly #apps = new Map<string, DeployedApp>();
  #byProject = new Map<string, AppVersions[]>();
  /** Apps that were removed and whose last runs continue. */
  readonly #gone = new Set<AppVersions>();
  /** Apps that were reported as served from a folder. */
  readonly #hidden = new Set<string>();
  /** Projects to look at. */
  readonly #stale = new Set<string | typeof ALL>();
  #looking: Promise<void> | undefined;
  #changed: AppChanged = () => {};
  readonly #closing = new AbortController();

  readonly #options: DeployedAppsOptions;

  constructor(options: DeployedAppsOptions) {
    this.#options = options;
  }

  /** Resolves after the first look. A failed look is repeated. */
  async start(changed: AppChanged): Promise<void> {
    const { feed, logger } = this.#options;
    this.#changed = changed;
    feed.onChange = (project) => void this.#look(project ?? ALL);
    await feed
      .listen()
      .catch((err: unknown) =>
        logger.warn({ err }, 'subscribing to changes of versions failed; the worker looks for changes at intervals'),
      );
    await this.#look(ALL);
    void atIntervals(this.#options.lookMs, this.#closing.signal, () => this.#look(ALL));
  }

  projects(): readonly string[] {
    return [...this.#byProject.keys()];
  }

  /** Called whenever a slot becomes free, so the list is kept ready. */
  appsOf(project: string): readonly AppVersions[] {
    return this.#byProject.get(project) ?? [];
  }

  find(project: string, app: string): AppVersions | undefined {
    const found = this.#apps.get(`${project}/${app}`);
    return found?.isServed ? found.versions : undefined;
  }

  /** Stops looking and preparing. Started apps stay. */
  async stop(): Promise<void> {
    this.#closing.abort();
    this.#options.feed.close();
    for (const app of this.#apps.values()) app.stop();
    await this.#looking;
  }

  /** Ends all processes. They end in order until `signal` fires. */
  async drain(signal: AbortSignal): Promise<void> {
    await this.stop();
    const all = [...[...this.#apps.values()].map(({ versions }) => versions), ...this.#gone];
    await Promise.all(all.map((versions) => versions.drain(signal)));
  }

  #look(project: string | typeof ALL): Promise<void> {
    this.#stale.add(project);
    this.#looking ??= this.#lookUntilSettled().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookUntilSettled(): Promise<void> {
    while (this.#stale.size > 0 && !this.#closing.signal.aborted) {
      const wanted = [...this.#stale];
      this.#stale.clear();
      try {
        if (wanted.includes(ALL)) await this.#lookAtAll();
        else for (const project of wanted) await this.#lookAt(project as string);
      } catch (err) {
        this.#options.logger.warn({ err }, 'reading the deployed versions failed; the next look repeats it');
      }
    }
  }

  async #lookAtAll(): Promise<void> {
    for (const project of await this.#options.feed.projects()) await this.#lookAt(project);
  }

  async #lookAt(project: string): Promise<void> {
    const found = await this.#options.feed.deployments(project);
    if (this.#closing.signal.aborted) return;
    const served = found.filter(({ app }) => this.#options.serves(project, app) && !this.#isHidden(project, app));
    const names = new Set(served.map(({ app }) => app));
    for (const deployed of [...this.#apps.values()]) {
      const { place } = deployed.versions;
      if (place.project === project && !names.has(place.app)) this.#remove(deployed);
    }
    for (const deployment of served) this.#follow(project, deployment);
  }

  #follow(project: string, deployment: Deployment): void {
    const { app } = deployment;
    const key = `${project}/${app}`;
    const deployed = this.#apps.get(key) ?? this.#add(project, app);
    this.#apps.set(key, deployed);
    const before = deployed.isServed;
    deployed.follow(deployment);
    if (deployed.isServed === before) return;
    this.#group();
    this.#changed(project, app);
  }

  #add(project: string, app: string): DeployedApp {
    const { feed, loader, makeRuntime, logger } = this.#options;
    // The folder is a version's own folder: OfferedVersion.
    const place = { project, app, folder: '' };
    const changed = (): void => {
      if (deployed.isServed) this.#changed(project, app);
    };
    const versions: AppVersions = new AppVersions(place, makeRuntime, changed, logger);
    const deployed: DeployedApp = new DeployedApp({ feed, loader, versions, logger });
    return deployed;
  }

  #remove(deployed: DeployedApp): void {
    const { versions } = deployed;
    const { project, app } = versions.place;
    this.#options.logger.info({ project, app }, 'the deployed app was removed; it ends its runs');
    deployed.stop();
    this.#apps.delete(`${project}/${app}`);
    this.#group();
    this.#gone.add(versions);
    void versions.drain().then(() => this.#gone.delete(versions));
    this.#changed(project, app);
  }

  #group(): void {
    const served = [...this.#apps.values()].filter(({ isServed }) => isServed).map(({ versions }) => versions);
    this.#byProject = Map.groupBy(served, ({ place }) => place.project);
  }

  #isHidden(project: string, app: string): boolean {
    const key = `${project}/${app}`;
    if (!this.#options.isInFolder(project, app)) {
      this.#hidden.delete(key);
      return false;
    }
    if (!this.#hidden.has(key))
      this.#options.logger.warn(
        { project, app },
        'the deployed versions are not served, because a folder holds the app',
      );
    this.#hidden.add(key);
    return true;
  }
}
