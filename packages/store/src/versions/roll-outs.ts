// Contract 7, "Versions": moves roll-outs on whose workers have died or whose time is over, by roll-outs.lua. Runs in every gateway.
import type { Redis } from 'ioredis';
import { deployedKey } from '../keys.ts';
import type { Task } from '../maintenance/rounds.ts';
import { withinLimit } from '../redis.ts';
import { numberIn, runScript, type Script } from '../scripts.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';

/** Returns the number of roll-outs that have ended. */
export const rollOutsScript: Script<void, number> = {
  name: 'roll-outs',
  encode: () => [],
  decode: numberIn,
};

export class RollOuts implements Task {
  readonly everyMs: number;

  readonly #redis: Redis;
  readonly #logger: StoreLogger;
  readonly #limitMs: number;

  constructor(parts: { redis: Redis; logger: StoreLogger; timings: StoreTimings }) {
    this.everyMs = parts.timings.reapMs;
    this.#redis = parts.redis;
    this.#logger = parts.logger;
    this.#limitMs = parts.timings.commandMs;
  }

  async run(): Promise<void> {
    try {
      for (const project of await withinLimit(this.#redis.smembers(deployedKey), this.#limitMs)) {
        const ended = await withinLimit(runScript(this.#redis, rollOutsScript, project, undefined), this.#limitMs);
        if (ended > 0) await withinLimit(this.#redis.spublish(deployedKey, project), this.#limitMs);
      }
    } catch (error) {
      this.#logger.warn({ err: error }, 'the roll-outs of versions were not moved on; the next round repeats it');
    }
  }
}
