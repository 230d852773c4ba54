// The index of projects, and which of them have open work. A round of maintenance costs what has work, not what exists.
import type { Redis } from 'ioredis';
import { INDEX_MS, projectsKey } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';

/** A project without open work is visited once in this many rounds. */
export const IDLE_ROUNDS = 30;
/** A gateway that wrote a project's score accepts for `INDEX_MS` without writing it again. A project is not idle until well after this time. */
const SETTLED_MS = 2 * INDEX_MS;

export interface IndexedProject {
  readonly name: string;
  /** The score in the index. A newer score means new runs. */
  score: string;
  /** Time at which the score last changed (monotonic ms). */
  since: number;
  /** Nothing is open. Only reap decides this. */
  idle: boolean;
  /** Spreads the visits of idle projects over the rounds. */
  readonly turn: number;
}

/** Returns whether an idle project has its turn in this round. */
export const hasTurn = ({ turn }: IndexedProject, round: number): boolean => (round + turn) % IDLE_ROUNDS === 0;

/** Returns whether every accept since the last change of the score has written its runs. */
export const isSettled = ({ since }: IndexedProject): boolean => performance.now() - since > SETTLED_MS;

export class ProjectIndex {
  readonly #projects = new Map<string, IndexedProject>();
  #turns = 0;

  readonly #redis: Redis;
  readonly #limitMs: number;

  constructor(redis: Redis, limitMs: number) {
    this.#redis = redis;
    this.#limitMs = limitMs;
  }

  /** Reads the index. Projects whose score has changed are not idle any more. @throws ServiceError `unavailable` */
  async read(): Promise<readonly IndexedProject[]> {
    const read = await withinLimit(this.#redis.zrange(projectsKey, '0', '-1', 'WITHSCORES'), this.#limitMs);
    const gone = new Set(this.#projects.keys());
    for (let at = 0; at < read.length; at += 2) {
      const name = read[at] as string;
      const score = read[at + 1] as string;
      gone.delete(name);
      const known = this.#projects.get(name);
      if (!known) {
        const turn = this.#turns++ % IDLE_ROUNDS;
        this.#projects.set(name, { name, score, since: performance.now(), idle: false, turn });
      } else if (known.score !== score) Object.assign(known, { score, since: performance.now(), idle: false });
    }
    for (const name of gone) this.#projects.delete(name);
    return [...this.#projects.values()];
  }

  /** Visits every project again: Redis or this gateway was away, and clients whose leases ended in that time may be alive. */
  wake(): void {
    for (const project of this.#projects.values()) project.idle = false;
  }
}

/** The parts that all tasks of maintenance use. */
export interface MaintenanceParts {
  readonly redis: Redis;
  readonly logger: StoreLogger;
  readonly timings: StoreTimings;
  readonly projects: ProjectIndex;
}
