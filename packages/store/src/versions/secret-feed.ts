// Contract 7, "Secrets": the worker's view of the secrets of its apps. A worker reads only copies that are sealed for its own key.
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { DeployedChannel } from './deployed-channel.ts';
import type { DeploymentFeedOptions } from './deployment-feed.ts';
import type { SecretRequest } from './secret-store.ts';

export class SecretFeed {
  /** Called when the secrets of a project may have changed; of all projects, if none is given. */
  onChange: (project?: string) => void = () => {};

  readonly workerId: string;
  readonly #redis: Redis;
  readonly #limitMs: number;
  readonly #channel: DeployedChannel;

  constructor({ commands, subscriber, workerId, commandMs }: DeploymentFeedOptions) {
    this.workerId = workerId;
    this.#redis = commands;
    this.#limitMs = commandMs;
    this.#channel = new DeployedChannel(subscriber, (project) => this.onChange(project));
  }

  /** Subscribes. Rejects with the error of Redis; a reconnect subscribes again. */
  listen(): Promise<void> {
    return this.#channel.listen();
  }

  close(): void {
    this.#channel.close();
  }

  /** Returns the name of the present state of an app's secrets, or undefined if the app never had a secret. @throws ServiceError `unavailable` */
  async revision(project: string, app: string): Promise<string | undefined> {
    const found = this.#redis.hget(projectPrefix(project) + names.secretRevisions, app);
    return (await withinLimit(found, this.#limitMs)) ?? undefined;
  }

  /** Returns this worker's copy of an app's secrets, if a gateway has sealed one. @throws ServiceError `unavailable` */
  async copy(project: string, app: string): Promise<string | undefined> {
    const key = `${projectPrefix(project)}${names.secretCopy}${app}:${this.workerId}`;
    return (await withinLimit(this.#redis.get(key), this.#limitMs)) ?? undefined;
  }

  /** Asks the gateways for a copy. @throws ServiceError `unavailable` */
  async ask(project: string, app: string, publicKey: string): Promise<void> {
    const request: SecretRequest = { app, workerId: this.workerId, publicKey };
    const key = projectPrefix(project) + names.secretRequests;
    await withinLimit(this.#redis.sadd(key, JSON.stringify(request)), this.#limitMs);
  }
}
