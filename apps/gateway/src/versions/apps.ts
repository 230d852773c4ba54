// Contract 7, "Apps": lists the apps of a project, from folders and from versions.
import type { AppDescription, StartLine } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import { checkProject, noSuchApp } from '../http/not-found.ts';
import { isoTime } from '../http/values.ts';
import { activationView, versionSummary } from './version-view.ts';
import { checkNames } from './versions.ts';

/** Versions and activations in the answer for one app. */
const MOST = 20;

export class Apps {
  readonly #store: GatewayStore;

  constructor(store: GatewayStore) {
    this.#store = store;
  }

  /** Returns the answer of `GET /v4/{project}/apps`. @throws ServiceError `not_found`, `unavailable` */
  async list(project: string): Promise<object> {
    checkProject(project);
    const [announced, deployed] = await Promise.all([
      this.#store.registry.apps(project),
      this.#store.versions.apps(project),
    ]);
    const names = [...new Set([...announced.keys(), ...deployed])].sort();
    const counts = await this.#store.appCounts(project, names);
    return { apps: names.map((name, at) => ({ ...appView(name, announced.get(name)), ...counts[at] })) };
  }

  /** Returns the answer of `GET /v4/{project}/apps/{app}`. @throws ServiceError `not_found`, `unavailable` */
  async one(project: string, app: string): Promise<object> {
    checkNames(project, app);
    const { versions: store } = this.#store;
    const [announced, versions, activations] = await Promise.all([
      this.#store.registry.apps(project),
      store.newest(project, app, MOST),
      store.activations(project, app),
    ]);
    const description = announced.get(app);
    if (!description && versions.length === 0) throw noSuchApp(app);
    const [counts] = await this.#store.appCounts(project, [app]);
    const active = versions.find(({ state }) => state === 'active')?.version;
    return {
      ...appView(app, description),
      ...(description?.startLog && { start_log: description.startLog.map(lineView) }),
      ...(active !== undefined && { version: active }),
      ...counts,
      versions: versions.map(versionSummary),
      activations: activations.slice(0, MOST).map((one) => ({ version: one.version, ...activationView(one) })),
    };
  }
}

const lineView = ({ at, stream, text }: StartLine): object => ({ time: isoTime(at), stream, text });

/** @param description undefined: versions of the app exist, but no worker has announced it */
function appView(name: string, description: AppDescription | undefined): object {
  if (!description)
    return { name, kind: 'functions', state: 'starting', reason: 'No worker serves the app.', functions: [] };
  const { kind, state, version, functions, error, waiting } = description;
  const reason = error?.message ?? waiting;
  return {
    name,
    kind,
    state,
    ...(reason !== undefined && { reason }),
    ...(version !== '' && { version }),
    functions,
  };
}
