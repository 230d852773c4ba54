// Contract 7, "Secrets": seals the secrets of apps with the newest key of `SECRETS_KEY`, so that an operator can remove an older key.
import { type SealedBox, UnsealError } from '@inference-proxy/crypto';
import type { SecretStore, StoredSecret, Task } from '@inference-proxy/store';

/** A new list of keys comes with a restart, so the first round starts at once. Later rounds find what gateways with older lists have sealed. */
const EVERY_MS = 600_000;

interface SealsLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
}

export class SecretSeals implements Task {
  readonly everyMs = EVERY_MS;
  readonly atOnce = true;

  readonly #store: SecretStore;
  readonly #box: SealedBox;
  readonly #logger: SealsLogger;

  constructor(store: SecretStore, box: SealedBox, logger: SealsLogger) {
    this.#store = store;
    this.#box = box;
    this.#logger = logger;
  }

  async run(): Promise<void> {
    try {
      for (const project of await this.#store.projects())
        for (const app of await this.#store.apps(project)) await this.#seal(project, app);
    } catch (err) {
      this.#logger.warn({ err }, 'the secrets of apps were not sealed with the newest key; a later round repeats it');
    }
  }

  async #seal(project: string, app: string): Promise<void> {
    const { secrets } = await this.#store.state(project, app);
    const old = secrets.filter(({ sealed }) => !this.#box.hasNewestKey(sealed));
    const unopened: string[] = [];
    let sealed = 0;
    for (const secret of old) {
      const fresh = this.#resealed(project, app, secret);
      if (fresh === undefined) unopened.push(secret.name);
      else if (await this.#store.reseal(project, app, secret, fresh)) sealed++;
    }
    if (sealed > 0) this.#logger.info({ project, app, sealed }, 'sealed secrets with the newest key of SECRETS_KEY');
    if (unopened.length > 0)
      this.#logger.warn({ project, app, unopened }, 'no key of SECRETS_KEY opens these secrets; set them again');
  }

  #resealed(project: string, app: string, { name, sealed }: StoredSecret): string | undefined {
    try {
      return this.#box.seal(this.#box.open(sealed, { project, app, name }), { project, app, name });
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error;
      return undefined;
    }
  }
}
