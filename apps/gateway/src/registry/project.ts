// Contract 1: lists the apps of a project, their functions, and the reason of each broken app.
import { type AppDescription, errorObject, isProjectName } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import { noSuchProject } from '../http/not-found.ts';

export class ProjectApps {
  readonly #store: GatewayStore;

  constructor(store: GatewayStore) {
    this.#store = store;
  }

  /**
   * Returns the answer of `GET /v4/{project}`: a JSON object.
   *
   * @throws ServiceError `not_found` if no worker ever served the project, `unavailable`
   */
  async list(project: string): Promise<Buffer> {
    const apps = isProjectName(project) ? await this.#store.registry.apps(project) : undefined;
    if (!apps?.size) throw noSuchProject();
    const sorted = [...apps.values()].sort((one, other) => (one.app < other.app ? -1 : 1));
    return Buffer.from(JSON.stringify({ project, apps: sorted.map(described) }));
  }
}

function described({ app, kind, state, version, functions, error, failed }: AppDescription): Record<string, unknown> {
  return {
    app,
    ...(kind === 'server' && { kind }),
    state,
    version,
    functions,
    ...(error && { error: errorObject(error) }),
    ...(failed && { failed: { version: failed.version, error: errorObject(failed.error) } }),
  };
}
