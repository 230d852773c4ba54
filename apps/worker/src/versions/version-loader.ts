// Contract 7: makes a version ready to start: its bundle is fetched and unpacked, its manifest is read, and its environment is built.
import type { DeploymentFeed } from '@inference-proxy/store';
import { ManifestError, readManifest } from '../deployments/manifest.ts';
import type { OfferedVersion } from '../deployments/offered-version.ts';
import type { BuildProgress, Environments } from '../environments/environments.ts';
import type { BundleCache } from './bundle-cache.ts';

export class VersionLoader {
  readonly #feed: Pick<DeploymentFeed, 'bundle'>;
  readonly #cache: BundleCache;
  readonly #environments: Environments;
  readonly #maxOutputBytes: number;

  constructor(
    feed: Pick<DeploymentFeed, 'bundle'>,
    cache: BundleCache,
    environments: Environments,
    maxOutputBytes: number,
  ) {
    this.#feed = feed;
    this.#cache = cache;
    this.#environments = environments;
    this.#maxOutputBytes = maxOutputBytes;
  }

  /**
   * Returns the version. Its error is set if its manifest is wrong.
   *
   * @throws BuildFailed if the environment cannot be built; the reason of the progress' signal; the errors of the store, of the bundle store
   * and of the file system. A later try may succeed.
   */
  async load(project: string, app: string, version: string, progress: BuildProgress): Promise<OfferedVersion> {
    const bundle = await this.#feed.bundle(project, app, version);
    if (!bundle) throw new Error(`the version ${version} has no record in the store; deploy it again`);
    const folder = await this.#cache.folderOf({ project, app, version, digest: bundle.digest });
    try {
      const read = await readManifest(folder, this.#maxOutputBytes);
      return { version, ...(await this.#environments.prepare({ project, app, version, folder, ...read }, progress)) };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      return { version, manifest: undefined, folder, error: { code: 'app_failed_to_start', message: error.message } };
    }
  }
}
