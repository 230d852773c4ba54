// Contract 7, "Versions": moves roll-outs on whose workers have died or whose time is over, by roll-outs.lua. Runs in every gateway.
import type { Redis } from 'ioredis';
import { deployedKey } from '../keys.ts';
import type { Task } from '../maintenance/rounds.ts';
import { withinLimit } from '../redis.ts';
import { listIn, numberIn, runScript, type Script, textIn } from '../scripts.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { type AuditEntry, auditEntryOf, MOST_AUDIT_ENTRIES } from './audit-entry.ts';

/** Called for each roll-out that the service has undone, with its entry of the audit log. */
export type Undone = (project: string, entry: AuditEntry) => void;

interface Round {
  /** Number of roll-outs that have ended. */
  readonly ended: number;
  /** Roll-outs that the service has undone. */
  readonly undone: readonly AuditEntry[];
}

export const rollOutsScript: Script<void, Round> = {
  name: 'roll-outs',
  encode: () => [MOST_AUDIT_ENTRIES],
  decode: (reply) => {
    const [ended, undone] = listIn(reply);
    return { ended: numberIn(ended), undone: listIn(undone).map((entry) => auditEntryOf(textIn(entry))) };
  },
};

export class RollOuts implements Task {
  readonly everyMs: number;

  readonly #redis: Redis;
  readonly #logger: StoreLogger;
  readonly #limitMs: number;
  readonly #undone: Undone;

  constructor(parts: { redis: Redis; logger: StoreLogger; timings: StoreTimings; undone?: Undone | undefined }) {
    this.everyMs = parts.timings.reapMs;
    this.#redis = parts.redis;
    this.#logger = parts.logger;
    this.#limitMs = parts.timings.commandMs;
    this.#undone = parts.undone ?? (() => {});
  }

  async run(): Promise<void> {
    try {
      for (const project of await withinLimit(this.#redis.smembers(deployedKey), this.#limitMs)) {
        const call = runScript(this.#redis, rollOutsScript, project, undefined);
        const { ended, undone } = await withinLimit(call, this.#limitMs);
        for (const entry of undone) this.#undone(project, entry);
        if (ended > 0) await withinLimit(this.#redis.spublish(deployedKey, project), this.#limitMs);
      }
    } catch (error) {
      this.#logger.warn({ err: error }, 'the roll-outs of versions were not moved on; the next round repeats it');
    }
  }
}
