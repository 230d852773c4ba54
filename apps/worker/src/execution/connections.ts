// Contract 6: the worker's connections to Redis: for commands, for subscriptions, and for the deliveries queue.
import { closeRedis, connectRedis, type Logger, redisReady } from '@inference-proxy/platform';
import type { Redis } from 'ioredis';

export class Connections {
  readonly commands: Redis;
  readonly subscriber: Redis;
  readonly deliveries: Redis;

  constructor(url: string, logger: Logger) {
    this.commands = connectRedis(url, 'worker', logger);
    this.subscriber = connectRedis(url, 'worker-subscriber', logger);
    this.deliveries = connectRedis(url, 'worker-deliveries', logger);
  }

  /** Resolves when all connections accept commands. */
  async ready(): Promise<void> {
    await Promise.all(this.#all().map((client) => redisReady(client)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#all().map((client) => closeRedis(client)));
  }

  #all(): Redis[] {
    return [this.commands, this.subscriber, this.deliveries];
  }
}
