// Looks whether Redis itself answers. On a busy host, Redis stands still for seconds, for example while the disk takes its file.
// Calls may be refused as `unavailable` then, as in an episode.
import { setTimeout as sleep } from 'node:timers/promises';
import { redisAddress } from '@inference-proxy/platform';
import { Redis } from 'ioredis';
import type { Trouble } from './history.ts';

const PING_EVERY_MS = 100;
/** A stall that is reported. Services give Redis longer than this before they refuse calls. */
const STALL_MS = 1000;
/** A command of this time (µs) is the service's own work, and excuses no call. */
const SLOW_COMMAND_US = (STALL_MS / 2) * 1000;
/** The place of the duration (µs) in an entry of Redis' slow log. */
const DURATION = 2;

/** Watches a Redis by a connection of its own, beside the proxies of the services. */
export class StoreWatch {
  readonly #redis: Redis;
  readonly #onStall: (stall: Trouble) => void;
  readonly #stopped = new AbortController();
  #watching: Promise<void> | undefined;

  /** @param onStall receives each time in which Redis was alive, executed no slow command, and did not answer */
  constructor(redisUrl: string, onStall: (stall: Trouble) => void) {
    this.#redis = new Redis({ ...redisAddress(redisUrl), retryStrategy: () => PING_EVERY_MS, maxRetriesPerRequest: 0 });
    this.#redis.on('error', () => {});
    this.#onStall = onStall;
  }

  start(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#redis.disconnect();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#look().catch(() => {}); // Redis ended, which excuses nothing
      await sleep(PING_EVERY_MS, undefined, { signal: this.#stopped.signal }).catch(() => {});
    }
  }

  async #look(): Promise<void> {
    const from = performance.now();
    await this.#redis.ping();
    const to = performance.now();
    if (to - from > STALL_MS && !(await this.#isSlowByItself())) this.#onStall({ from, to });
  }

  /** Returns whether Redis executed a slow command, and clears Redis' slow log. */
  async #isSlowByItself(): Promise<boolean> {
    const entries = (await this.#redis.slowlog('GET', -1)) as readonly (readonly unknown[])[];
    await this.#redis.slowlog('RESET');
    return entries.some((entry) => Number(entry[DURATION]) > SLOW_COMMAND_US);
  }
}
