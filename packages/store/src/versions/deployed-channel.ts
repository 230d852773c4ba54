// Contract 7: the channel of changes of versions, one for all projects. A message is the name of a project.
import type { Redis } from 'ioredis';
import { deployedKey } from '../keys.ts';

export class DeployedChannel {
  readonly #subscriber: Redis;
  readonly #onChange: (project?: string) => void;

  /**
   * @param subscriber a connection that only subscribes; several objects may share it
   * @param onChange called with the project; without a project after a reconnect, because messages may be lost
   */
  constructor(subscriber: Redis, onChange: (project?: string) => void) {
    this.#subscriber = subscriber;
    this.#onChange = onChange;
  }

  /** Subscribes. Rejects with the error of Redis; a reconnect subscribes again. */
  async listen(): Promise<void> {
    this.#subscriber.on('smessageBuffer', this.#onMessage);
    this.#subscriber.on('ready', this.#onReady);
    await this.#subscriber.ssubscribe(deployedKey);
  }

  /** Stops listening. The owner of the connection closes it. */
  close(): void {
    this.#subscriber.off('smessageBuffer', this.#onMessage);
    this.#subscriber.off('ready', this.#onReady);
  }

  readonly #onMessage = (channel: Buffer, message: Buffer): void => {
    if (channel.toString() === deployedKey) this.#onChange(message.toString());
  };

  readonly #onReady = (): void => {
    // If the command fails, the next look finds what the messages said.
    this.#subscriber.ssubscribe(deployedKey).then(
      () => this.#onChange(),
      () => {},
    );
  };
}
