// Contract 7, "Versions": deploys, activates and reads the versions of an app.
import { isAppName, isProjectName, ServiceError } from '@inference-proxy/contracts';
import type { VersionRecord, VersionStore } from '@inference-proxy/store';
import { noSuchProject } from '../http/not-found.ts';
import type { StoredUpload } from './uploads.ts';
import { versionView } from './version-view.ts';

/** The names in a version's path. */
export interface VersionPath {
  readonly project: string;
  readonly app: string;
  /** At least the first 8 digits. */
  readonly version: string;
}

/** A user who changes versions: `sub` of the token. */
export interface Author {
  readonly author?: string;
}

export class Versions {
  readonly #store: VersionStore;
  readonly #termMs: number;

  /** @param termMs longest time of a roll-out (`ROLL_OUT_TIMEOUT_S`) */
  constructor(store: VersionStore, termMs: number) {
    this.#store = store;
    this.#termMs = termMs;
  }

  /** Records a bundle as a version. Returns the status and the body of the answer. @throws ServiceError `unavailable` */
  async deploy(
    { project, app }: Pick<VersionPath, 'project' | 'app'>,
    { digest, size, version, manifest }: StoredUpload,
    { activate, ...by }: Author & { readonly activate: boolean },
  ): Promise<{ status: 200 | 201; body: { version: string; state: string } }> {
    const mode = activate ? 'activate' : 'build';
    const { created, state } = await this.#store.deploy(project, {
      ...{ app, version, bundle: digest, size, mode, termMs: this.#termMs, ...by },
      ...(manifest !== undefined && { manifest }),
    });
    return { status: created ? 201 : 200, body: { version, state } };
  }

  /** @throws ServiceError `not_found`, `conflict`, `unavailable` */
  async activate(path: VersionPath, by: Author): Promise<{ version: string; state: string }> {
    const { project, app } = path;
    const { version } = await this.find(path);
    const state = await this.#store.activate(project, { app, version, termMs: this.#termMs, ...by });
    if (state === undefined) throw noSuchVersion(path);
    if (state === 'failed')
      throw new ServiceError('conflict', 'The version has failed. Deploy it again to build it again.');
    return { version, state };
  }

  /** @throws ServiceError `not_found`, `unavailable` */
  async delete({ project, app }: Pick<VersionPath, 'project' | 'app'>): Promise<void> {
    checkNames(project, app);
    if (!(await this.#store.delete(project, app)))
      throw new ServiceError('not_found', `There is no version of the app \`${app}\` in this project.`);
  }

  /** @throws ServiceError `not_found`, `conflict`, `unavailable` */
  async view(path: VersionPath): Promise<object> {
    const record = await this.find(path);
    return versionView(record, await this.#store.activations(path.project, path.app));
  }

  /** @throws ServiceError `not_found`, `conflict` for an ambiguous version, `unavailable` */
  async find(path: VersionPath): Promise<VersionRecord> {
    checkNames(path.project, path.app);
    const record = await this.#store.find(path.project, path.app, path.version);
    if (!record) throw noSuchVersion(path);
    return record;
  }
}

/** Checks the names of a path. @throws ServiceError `not_found` */
export function checkNames(project: string, app: string): void {
  if (!isProjectName(project)) throw noSuchProject();
  if (!isAppName(app)) throw new ServiceError('not_found', `\`${app}\` cannot be the name of an app.`);
}

const noSuchVersion = ({ app }: VersionPath): ServiceError =>
  new ServiceError('not_found', `There is no such version of the app \`${app}\`; give at least 8 hexadecimal digits.`);
