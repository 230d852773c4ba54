// Redis as the services use it: calls within a time limit, the calls of one tick as one, its clock, and the channels of projects.
import { ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { projectPrefix } from './keys.ts';
import { storeError } from './store-error.ts';
import type { StoreLogger } from './timings.ts';

/**
 * Returns the promise's value. Rejects with `unavailable` after `ms`, or with `storeError` if Redis refused or lost the call.
 * The call itself continues, and a late answer is dropped.
 */
export function withinLimit<T>(call: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // If the process stood still, the answer may have arrived long ago. It is read in this turn of the loop, before the immediates.
      setImmediate(() => reject(new ServiceError('unavailable', 'The run store did not answer in time.')));
    }, ms);
    call.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (cause: unknown) => {
        clearTimeout(timer);
        reject(storeError(cause));
      },
    );
  });
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Limits of one script call, so that no single call holds Redis for long. */
const MAX_ITEMS = 256;
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Gathers the items of one turn of the event loop and sends them as one script call per project: +40 % calls/s over a call per run. The
 * client's auto-pipelining does not reach this.
 */
export class TickBatch<Item, Answer> {
  #waiting = new Map<string, Waiting<Item, Answer>[]>();
  #scheduled = false;

  readonly #send: (project: string, items: Item[]) => Promise<readonly Answer[]>;
  readonly #bytesOf: (item: Item) => number;

  /**
   * @param send sends one script call and returns the answers in the order of its items
   * @param bytesOf returns the payload size of an item
   */
  constructor(send: (project: string, items: Item[]) => Promise<readonly Answer[]>, bytesOf: (item: Item) => number) {
    this.#send = send;
    this.#bytesOf = bytesOf;
  }

  /** Returns the answer to this item. Rejects with the error of its call. */
  add(project: string, item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const entry = { item, resolve, reject };
      const list = this.#waiting.get(project);
      if (list) list.push(entry);
      else this.#waiting.set(project, [entry]);
      if (!this.#scheduled) {
        this.#scheduled = true;
        setImmediate(() => this.#flush());
      }
    });
  }

  #flush(): void {
    this.#scheduled = false;
    const batches = this.#waiting;
    this.#waiting = new Map();
    for (const [project, list] of batches) {
      let from = 0;
      let bytes = 0;
      for (let at = 0; at < list.length; at++) {
        const size = this.#bytesOf((list[at] as Waiting<Item, Answer>).item);
        if (at > from && (at - from >= MAX_ITEMS || bytes + size > MAX_BYTES)) {
          void this.#call(project, list.slice(from, at));
          from = at;
          bytes = 0;
        }
        bytes += size;
      }
      void this.#call(project, from === 0 ? list : list.slice(from));
    }
  }

  async #call(project: string, list: Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(
        project,
        list.map((entry) => entry.item),
      );
      for (let at = 0; at < list.length; at++) list[at]?.resolve(answers[at] as Answer);
    } catch (error) {
      for (const entry of list) entry.reject(error);
    }
  }
}

/** The store's clock as this process knows it: the last time that Redis sent, moved on by this machine's monotonic clock. */
export class StoreClock {
  #storeMs = Number.NaN;
  #receivedAt = 0;

  /** Reads the clock of Redis. */
  async read(redis: Redis): Promise<void> {
    const [seconds, micros] = await redis.time();
    this.set(Number(seconds) * 1000 + Number(micros) / 1000);
  }

  /** @param storeMs the store's time in an answer that has just arrived */
  set(storeMs: number): void {
    this.#storeMs = storeMs;
    this.#receivedAt = performance.now();
  }

  get known(): boolean {
    return !Number.isNaN(this.#storeMs);
  }

  /** The store's time now, in ms. It is behind by the network delay at most. */
  now(): number {
    return Math.round(this.#storeMs + performance.now() - this.#receivedAt);
  }
}

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

/** Pub/sub: the messages of one kind to one service, on one shard channel per project. Restores the subscriptions after a reconnect. */
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
