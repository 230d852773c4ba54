// Contract 7, "Secrets": seals the secrets of apps for the workers that ask for them. Any gateway answers a request.
import { type SealedBox, sealForWorker, UnsealError } from '@inference-proxy/crypto';
import type { SecretRequest, SecretStore, StoredSecret, StoreLogger, Task } from '@inference-proxy/store';

export class SecretCopies implements Task {
  /** A worker that starts an app waits for this time at most. */
  readonly everyMs: number;

  readonly #store: SecretStore;
  readonly #box: SealedBox;
  readonly #logger: StoreLogger;

  constructor(store: SecretStore, box: SealedBox, options: { readonly logger: StoreLogger; readonly everyMs: number }) {
    this.#store = store;
    this.#box = box;
    this.#logger = options.logger;
    this.everyMs = options.everyMs;
  }

  async run(): Promise<void> {
    try {
      for (const project of await this.#store.projects())
        for (const request of await this.#store.requests(project)) await this.#answer(project, request);
    } catch (error) {
      this.#logger.warn({ err: error }, 'the secrets of apps were not sealed for workers; the next round repeats it');
    }
  }

  async #answer(project: string, request: SecretRequest): Promise<void> {
    const { app, workerId, publicKey } = request;
    const { revision, secrets } = await this.#store.state(project, app);
    if (revision === undefined) return;
    const values: Record<string, string> = {};
    const unopened: string[] = [];
    for (const secret of secrets) {
      const value = this.#opened(project, app, secret);
      if (value === undefined) unopened.push(secret.name);
      else values[secret.name] = value;
    }
    const text = Buffer.from(JSON.stringify({ revision, values, unopened }));
    let sealed: string;
    try {
      sealed = sealForWorker(publicKey, text, { project, app, workerId });
    } catch {
      this.#logger.warn({ project, app, workerId }, 'the public key of a worker is malformed; its request is dropped');
      return;
    }
    await this.#store.copy(project, request, sealed);
  }

  #opened(project: string, app: string, { name, sealed }: StoredSecret): string | undefined {
    try {
      return this.#box.open(sealed, { project, app, name }).toString();
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error;
      this.#logger.error(
        { project, app, name, reason: error.message },
        'a secret of an app cannot be opened; set it again',
      );
      return undefined;
    }
  }
}
