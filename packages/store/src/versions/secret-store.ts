// Contract 7, "Secrets": the gateway's interface to the secrets of apps. The store sees sealed values only.
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { deployedKey, names, projectPrefix, secretProjectsKey } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { runScript } from '../scripts.ts';
import { resealScript } from './secret-reseal.ts';
import { valuesOf } from './version-store.ts';

/** A secret as the store has it. */
export interface StoredSecret {
  readonly name: string;
  /** Unix ms. */
  readonly updatedAt: number;
  /** Sealed with `SECRETS_KEY`. */
  readonly sealed: string;
}

/** A worker's request for its copy of an app's secrets. */
export interface SecretRequest {
  readonly app: string;
  readonly workerId: string;
  /** The worker's public key. */
  readonly publicKey: string;
}

/** The secrets of an app, and the revision that names this state of them. */
export interface SecretState {
  readonly revision: string | undefined;
  readonly secrets: readonly StoredSecret[];
}

/** A worker fetches its copy at once, and keeps the copy in its memory. */
const COPY_MS = 60_000;
const MOST_REQUESTS = 100;

export class SecretStore {
  readonly #redis: Redis;
  readonly #limitMs: number;

  constructor(redis: Redis, { commandMs }: { readonly commandMs: number }) {
    this.#redis = redis;
    this.#limitMs = commandMs;
  }

  /** Returns the secrets of an app, sorted by name. @throws ServiceError `unavailable` */
  async state(project: string, app: string): Promise<SecretState> {
    const prefix = projectPrefix(project);
    // One transaction: the revision must belong to the values.
    const read = this.#redis
      .multi()
      .hget(prefix + names.secretRevisions, app)
      .hgetall(prefix + names.secrets + app)
      .exec();
    const [revision, fields] = valuesOf(await this.#within(read)) as [string | null, Record<string, string>];
    const secrets = Object.entries(fields).map(([name, value]): StoredSecret => {
      const [updated = '', sealed = ''] = value.split(' ');
      return { name, updatedAt: Number(updated), sealed };
    });
    return { revision: revision ?? undefined, secrets: secrets.sort((a, b) => (a.name < b.name ? -1 : 1)) };
  }

  /** Sets a secret. The workers of the app learn of it and restart the app. @throws ServiceError `unavailable` */
  async set(project: string, app: string, name: string, sealed: string): Promise<void> {
    const prefix = projectPrefix(project);
    // The index is written first. A project without secrets in it does no harm, but requests of a project outside of it stay unanswered.
    await this.#within(this.#redis.sadd(secretProjectsKey, project));
    const change = this.#redis
      .multi()
      .hset(prefix + names.secrets + app, name, entryOf(Date.now(), sealed))
      .hset(prefix + names.secretRevisions, app, randomUUID());
    valuesOf(await this.#within(change.exec()));
    await this.#notify(project);
  }

  /** Removes a secret. Returns whether it existed. @throws ServiceError `unavailable` */
  async remove(project: string, app: string, name: string): Promise<boolean> {
    const prefix = projectPrefix(project);
    if ((await this.#within(this.#redis.hexists(prefix + names.secrets + app, name))) === 0) return false;
    // One transaction: a secret that is removed without a new revision would stay in the app's processes.
    const change = this.#redis
      .multi()
      .hdel(prefix + names.secrets + app, name)
      .hset(prefix + names.secretRevisions, app, randomUUID());
    valuesOf(await this.#within(change.exec()));
    await this.#notify(project);
    return true;
  }

  /**
   * Replaces the sealed form of a secret. Its value and its date stay, and the app does not restart. Returns false if a user has set or removed
   * the secret meanwhile.
   *
   * @throws ServiceError `unavailable`
   */
  reseal(project: string, app: string, { name, updatedAt, sealed }: StoredSecret, fresh: string): Promise<boolean> {
    const change = { app, name, before: entryOf(updatedAt, sealed), after: entryOf(updatedAt, fresh) };
    return this.#within(runScript(this.#redis, resealScript, project, change));
  }

  /** Returns the apps that have, or had, secrets. @throws ServiceError `unavailable` */
  apps(project: string): Promise<string[]> {
    return this.#within(this.#redis.hkeys(projectPrefix(project) + names.secretRevisions));
  }

  /** Returns the projects that have, or had, secrets. @throws ServiceError `unavailable` */
  projects(): Promise<string[]> {
    return this.#within(this.#redis.smembers(secretProjectsKey));
  }

  /** Removes and returns requests of workers. A worker repeats a request that is not answered. @throws ServiceError `unavailable` */
  async requests(project: string): Promise<SecretRequest[]> {
    const texts = await this.#within(this.#redis.spop(projectPrefix(project) + names.secretRequests, MOST_REQUESTS));
    return texts.map((text) => JSON.parse(text) as SecretRequest);
  }

  /** Stores the copy of a worker, sealed for this worker. @throws ServiceError `unavailable` */
  async copy(project: string, { app, workerId }: SecretRequest, sealed: string): Promise<void> {
    await this.#within(
      this.#redis.set(`${projectPrefix(project)}${names.secretCopy}${app}:${workerId}`, sealed, 'PX', COPY_MS),
    );
  }

  async #notify(project: string): Promise<void> {
    await this.#within(this.#redis.spublish(deployedKey, project));
  }

  #within<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.#limitMs);
  }
}

const entryOf = (updatedAt: number, sealed: string): string => `${updatedAt} ${sealed}`;
