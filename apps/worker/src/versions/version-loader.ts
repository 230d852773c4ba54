// Contract 7: makes a version ready to start: its bundle is fetched and unpacked, and its manifest is read.
import type { DeploymentFeed } from '@inference-proxy/store';
import { ManifestError, readManifest } from '../deployments/manifest.ts';
import type { OfferedVersion } from '../deployments/versions.ts';
import type { BundleCache } from './bundle-cache.ts';

export class VersionLoader {
  readonly #feed: Pick<DeploymentFeed, 'bundle'>;
  readonly #cache: BundleCache;
  readonly #maxOutputBytes: number;

  constructor(feed: Pick<DeploymentFeed, 'bundle'>, cache: BundleCache, maxOutputBytes: number) {
    this.#feed = feed;
    this.#cache = cache;
    this.#maxOutputBytes = maxOutputBytes;
  }

  /**
   * Returns the version. Its error is set if its manifest is wrong.
   *
   * @throws the errors of the store, of the bundle store and of the file system; a later try may succeed
   */
  async load(project: string, app: string, version: string): Promise<OfferedVersion> {
    const bundle = await this.#feed.bundle(project, app, version);
    if (!bundle) throw new Error(`the version ${version} is not in the store`);
    const folder = await this.#cache.folderOf({ project, app, version, digest: bundle.digest });
    try {
      const { manifest } = await readManifest(folder, this.#maxOutputBytes);
      return { version, manifest, folder };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      return { version, manifest: undefined, folder, error: { code: 'app_failed_to_start', message: error.message } };
    }
  }
}
