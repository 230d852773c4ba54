// Contract 7, "Secrets": the secrets of the apps that this worker serves. A gateway seals the values for the key of this worker.
import { WorkerKeys } from '@inference-proxy/crypto';
import { atIntervals, pause, retry } from '@inference-proxy/retry';
import type { SecretFeed, StoreLogger } from '@inference-proxy/store';
import { z } from 'zod';

const RETRY_MS = 500;
/** A gateway answers requests twice a second. */
const LOOK_MS = 100;
/** Looks after which a request is repeated, because a gateway may have died with it. */
const ASK_EVERY = 20;

export type SecretValues = Readonly<Record<string, string>>;

/** Returns the secrets of an app for the start of a process. Rejects with a text for the app's author. */
export type SecretsOf = (project: string, app: string) => Promise<SecretValues>;

/** The secrets of apps outside of a service, such as in `check`. */
export const noSecrets: SecretsOf = async () => ({});

const copySchema = z.object({
  revision: z.string(),
  values: z.record(z.string(), z.string()),
  /** Names of the secrets that no key of the gateway opens. */
  unopened: z.array(z.string()),
});

type Copy = Omit<z.infer<typeof copySchema>, 'revision'> & { readonly revision: string | undefined };

const NONE: Copy = { revision: undefined, values: {}, unopened: [] };

export interface OpenedSecretsOptions {
  readonly feed: SecretFeed;
  /** Time between two looks without a message, ms. */
  readonly lookMs: number;
  readonly logger: StoreLogger;
}

export class OpenedSecrets {
  /** Called when the secrets of an app have changed since its processes started. */
  onChange: (project: string, app: string) => void = () => {};

  readonly #keys = new WorkerKeys();
  /** By project and app: the last copy. */
  readonly #known = new Map<string, Copy>();
  /** By project and app: the revision with which the app was started or restarted. */
  readonly #applied = new Map<
    string,
    { readonly project: string; readonly app: string; revision: string | undefined }
  >();
  #looking: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  readonly #options: OpenedSecretsOptions;

  constructor(options: OpenedSecretsOptions) {
    this.#options = options;
  }

  /** Follows changes from now on. Never rejects. */
  async start(): Promise<void> {
    const { feed, logger } = this.#options;
    feed.onChange = (project) => this.#look(project);
    await feed
      .listen()
      .catch((err: unknown) =>
        logger.warn({ err }, 'subscribing to changes of secrets failed; the worker looks for changes at intervals'),
      );
    void atIntervals(this.#options.lookMs, this.#closing.signal, () => this.#look(undefined));
  }

  /** Stops following. Started processes keep their secrets. */
  stop(): void {
    this.#closing.abort();
    this.#options.feed.close();
  }

  /** Returns the secrets for the start of a process. While the store is away, the last copy counts. */
  readonly of: SecretsOf = async (project, app) => {
    const name = `${project}/${app}`;
    const known = this.#known.get(name);
    const copy = await this.#present(project, app, known);
    if (!this.#applied.has(name)) this.#applied.set(name, { project, app, revision: copy.revision });
    if (copy.unopened.length > 0)
      throw new Error(`no key of SECRETS_KEY opens the secrets ${copy.unopened.join(', ')}; set them again`);
    return copy.values;
  };

  async #present(project: string, app: string, known: Copy | undefined): Promise<Copy> {
    const { feed, logger } = this.#options;
    try {
      const revision = await feed.revision(project, app);
      if (known && known.revision === revision) return known;
    } catch {
      if (known) return known;
    }
    const { signal } = this.#closing;
    const failed = (err: unknown): void =>
      logger.warn({ err, project, app }, 'reading the secrets of the app failed; retrying');
    const copy = await retry(() => this.#fetch(project, app), { firstMs: RETRY_MS, signal, failed });
    this.#known.set(`${project}/${app}`, copy);
    return copy;
  }

  /** Waits until a gateway has sealed the present secrets for this worker. */
  async #fetch(project: string, app: string): Promise<Copy> {
    const { feed } = this.#options;
    const { signal } = this.#closing;
    for (let looks = 0; ; looks++) {
      signal.throwIfAborted();
      const revision = await feed.revision(project, app);
      if (revision === undefined) return NONE;
      const sealed = await feed.copy(project, app);
      const copy = sealed === undefined ? undefined : this.#open(project, app, sealed);
      if (copy?.revision === revision) return copy;
      if (looks % ASK_EVERY === 0) await feed.ask(project, app, this.#keys.publicKey);
      await pause(LOOK_MS, signal);
    }
  }

  #open(project: string, app: string, sealed: string): Copy {
    const bytes = this.#keys.open(sealed, { project, app, workerId: this.#options.feed.workerId });
    return copySchema.parse(JSON.parse(bytes.toString()));
  }

  #look(project: string | undefined): void {
    this.#looking = this.#looking.then(async () => {
      for (const applied of this.#applied.values())
        if (project === undefined || applied.project === project) await this.#lookAt(applied);
    });
  }

  async #lookAt(applied: {
    readonly project: string;
    readonly app: string;
    revision: string | undefined;
  }): Promise<void> {
    const { project, app } = applied;
    try {
      const revision = await this.#options.feed.revision(project, app);
      if (revision === applied.revision || this.#closing.signal.aborted) return;
      applied.revision = revision;
      this.onChange(project, app);
    } catch (err) {
      this.#options.logger.warn({ err, project, app }, 'looking for changed secrets failed; the next look repeats it');
    }
  }
}
