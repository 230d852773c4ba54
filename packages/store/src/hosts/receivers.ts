// Contract 5, "Deliveries": what a project sees of its receivers: open attempts, parked deliveries and the circuit. Reads only.
import type { Redis } from 'ioredis';
import { hostsPrefix, names } from '../keys.ts';
import { withinLimit } from '../redis.ts';

/** `recovering`: the circuit has closed, and the number of attempts grows again. */
export type Circuit = 'closed' | 'open' | 'recovering';

export interface Receiver {
  /** `host:port`. */
  readonly host: string;
  readonly circuit: Circuit;
  readonly failuresInARow: number;
  /** Time of the next probe of an open circuit, Unix ms. */
  readonly probeAt?: number;
  readonly openAttempts: number;
  readonly parked: number;
  /** When the longest parked delivery was parked, Unix ms. */
  readonly parkedSince?: number;
}

/** Receivers in a list. */
const MOST = 100;

export class Receivers {
  readonly #redis: Redis;
  readonly #limitMs: number;

  /** @param limitMs time limit of a call to the store */
  constructor(redis: Redis, limitMs: number) {
    this.#redis = redis;
    this.#limitMs = limitMs;
  }

  /** Returns the receivers with parked deliveries, an open or recovering circuit, or open attempts; the newest trouble first. */
  async troubled(project: string): Promise<Receiver[]> {
    const key = `${hostsPrefix}${names.troubled}${project}`;
    const hosts = await withinLimit(this.#redis.zrange(key, '0', String(MOST - 1), 'REV'), this.#limitMs);
    const all = await this.#read(project, hosts);
    return all.filter(({ circuit, parked, openAttempts }) => circuit !== 'closed' || parked > 0 || openAttempts > 0);
  }

  /** Returns one receiver. An unknown receiver has a closed circuit and no deliveries. */
  async one(project: string, host: string): Promise<Receiver> {
    const [found] = await this.#read(project, [host]);
    return found as Receiver;
  }

  async #read(project: string, hosts: readonly string[]): Promise<Receiver[]> {
    if (hosts.length === 0) return [];
    const [seconds] = await withinLimit(this.#redis.time(), this.#limitMs);
    const read = hosts.map(async (host): Promise<Receiver> => {
      const line = `${project} ${host}`;
      const parkedKey = hostsPrefix + names.parked + line;
      const [[row, probe, ramp], openAttempts, parked, [, oldest]] = await Promise.all([
        this.#redis.hmget(hostsPrefix + names.circuit + line, 'row', 'probe', 'ramp'),
        this.#redis.zcount(hostsPrefix + names.open + line, Number(seconds) * 1000, '+inf'),
        this.#redis.zcard(parkedKey),
        this.#redis.zrange(parkedKey, '0', '0', 'WITHSCORES'),
      ]);
      return {
        host,
        circuit: probe != null ? 'open' : Number(ramp ?? 0) > 0 ? 'recovering' : 'closed',
        failuresInARow: Number(row ?? 0),
        ...(probe != null && { probeAt: Number(probe) }),
        openAttempts,
        parked,
        ...(oldest !== undefined && { parkedSince: Math.floor(Number(oldest) / 1000) }),
      };
    });
    return withinLimit(Promise.all(read), this.#limitMs);
  }
}
