// Pub/sub: the messages of one kind to one service, on one shard channel per project. Restores the subscriptions after a reconnect.
import type { Redis } from 'ioredis';
import { projectPrefix } from './keys.ts';
import type { StoreLogger } from './timings.ts';

export interface ProjectChannelsOptions {
  /** A connection that only subscribes. Several objects may share it. */
  readonly subscriber: Redis;
  readonly logger: StoreLogger;
  /** The channels' name behind the project's prefix. */
  readonly name: string;
  readonly onMessage: (project: string, message: Buffer) => void;
  /** Called after a reconnect, when a subscription is confirmed. Earlier messages may be lost, so the owner reads the store. */
  readonly onRestored: (project: string) => void;
}

/** Every channel of a project begins with this text. */
const BEFORE_PROJECT = projectPrefix('').indexOf('}');

export class ProjectChannels {
  readonly #confirmed = new Map<string, Promise<void>>();
  /** The part of every channel's name that follows the project. */
  readonly #ending: string;

  readonly #options: ProjectChannelsOptions;

  constructor(options: ProjectChannelsOptions) {
    this.#options = options;

    this.#ending = projectPrefix('').slice(BEFORE_PROJECT) + options.name;
    options.subscriber.on('smessageBuffer', this.#onMessage);
    // Every reconnect sends the subscriptions again.
    options.subscriber.on('ready', this.#onReady);
  }

  /** Resolves when the project's channel is confirmed. A second call shares the first one's answer. Rejects with the error of Redis. */
  subscribe(project: string): Promise<void> {
    const known = this.#confirmed.get(project);
    if (known) return known;
    const confirmed = this.#send(project).catch((error: unknown) => {
      if (this.#confirmed.get(project) === confirmed) this.#confirmed.delete(project);
      throw error;
    });
    this.#confirmed.set(project, confirmed);
    return confirmed;
  }

  async leave(project: string): Promise<void> {
    this.#confirmed.delete(project);
    await this.#options.subscriber.sunsubscribe(this.#channel(project));
  }

  /** Stops listening. The owner of the connection closes it. */
  close(): void {
    this.#options.subscriber.off('smessageBuffer', this.#onMessage);
    this.#options.subscriber.off('ready', this.#onReady);
  }

  #channel(project: string): string {
    return projectPrefix(project) + this.#options.name;
  }

  async #send(project: string): Promise<void> {
    await this.#options.subscriber.ssubscribe(this.#channel(project));
  }

  readonly #onMessage = (channel: Buffer, message: Buffer): void => {
    const name = channel.toString('latin1');
    if (!name.endsWith(this.#ending)) return;
    this.#options.onMessage(name.slice(BEFORE_PROJECT, -this.#ending.length), message);
  };

  readonly #onReady = (): void => {
    const { logger, onRestored } = this.#options;
    for (const project of this.#confirmed.keys()) {
      this.#send(project).then(
        () => onRestored(project),
        (error: unknown) =>
          logger.warn(
            { err: error, project },
            'the subscription after a reconnect failed; the next reconnect repeats it',
          ),
      );
    }
  };
}
