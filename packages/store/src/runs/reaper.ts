// Ends runs of dead workers and gateways, and repeats lost jobs (reap.lua). Runs in every gateway. Doubles are harmless.
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { INDEX_MS, projectsKey } from '../keys.ts';
import { runScript, runScriptAt } from '../scripts.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { forgetProjectScript } from './forget-project.ts';
import { type ProjectState, type Reaped, reapScript } from './reap.ts';
import { Rounds } from './rounds.ts';

/** Runs handled at most per kind and call, so that a call stays short. */
const MOST = 200;
/** Calls in a row for one project. Further runs wait for the next round. */
const MOST_CALLS = 50;
/** A project without open runs is visited once in this many rounds. */
const IDLE_ROUNDS = 30;
/** A gap of this many rounds between two reaps of an idle project is normal on a busy machine. It is not a pause of Redis. */
const IDLE_GAP_ROUNDS = 2 * IDLE_ROUNDS;
/** A gateway that wrote a project's score accepts for `INDEX_MS` without writing it again. A project is not idle until well after this time. */
const SETTLED_MS = 2 * INDEX_MS;

export class Reaper extends Rounds {
  #round = 0;
  /** Last time at which Redis answered (monotonic ms). */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** Per project: its score in the index, when the score last changed (monotonic ms), and whether it is idle. A newer score means new runs. */
  readonly #seen = new Map<string, { score: string; since: number; idle: boolean }>();

  readonly #redis: Redis;
  readonly #deliveries: DeliveryQueue;
  readonly #logger: StoreLogger;
  readonly #timings: StoreTimings;

  constructor(redis: Redis, deliveries: DeliveryQueue, logger: StoreLogger, timings: StoreTimings) {
    super(timings.reapMs);
    this.#redis = redis;
    this.#deliveries = deliveries;
    this.#logger = logger;
    this.#timings = timings;
  }

  /** Visits all projects with something open. */
  protected override async look(): Promise<void> {
    try {
      this.#round++;
      const projects = await withinLimit(
        this.#redis.zrange(projectsKey, '0', '-1', 'WITHSCORES'),
        this.#timings.commandMs,
      );
      const now = performance.now();
      // Redis or this gateway was away. Clients whose leases ended in that time may be alive, in every project.
      if (now - this.#answeredAt > this.#timings.pauseMs) for (const seen of this.#seen.values()) seen.idle = false;
      this.#answeredAt = now;
      const indexed = new Set(projects);
      for (const project of this.#seen.keys()) if (!indexed.has(project)) this.#seen.delete(project);
      for (let at = 0; at < projects.length; at += 2) {
        const project = projects[at] as string;
        const score = projects[at + 1] as string;
        let seen = this.#seen.get(project);
        if (seen?.score !== score) {
          seen = { score, since: performance.now(), idle: false };
          this.#seen.set(project, seen);
        }
        if (seen.idle && this.#round % IDLE_ROUNDS !== 0) continue;
        const settled = performance.now() - seen.since > SETTLED_MS;
        const state = await this.#safely(project, seen.idle, settled);
        seen.idle = state !== 'open' && settled;
        if (state === 'empty' && settled) await this.#forget(project, score);
      }
    } catch (error) {
      this.#logger.warn(
        { err: error },
        'the list of projects was not read, so nothing was reaped; the next round repeats it',
      );
    }
  }

  /** Reaps one project. A failure does not keep the other projects from being reaped. */
  async #safely(project: string, idle: boolean, settled: boolean): Promise<ProjectState> {
    const { pauseMs, reapMs } = this.#timings;
    try {
      return await this.#project(project, idle ? pauseMs + IDLE_GAP_ROUNDS * reapMs : pauseMs, settled);
    } catch (error) {
      this.#logger.warn({ err: error, project }, 'a project was not reaped; the next round repeats it');
      return 'open';
    }
  }

  /** Removes a project without runs, apps, workers and gateways from the index. The next use adds it again. */
  async #forget(project: string, score: string): Promise<void> {
    try {
      const forgotten = runScriptAt(this.#redis, forgetProjectScript, projectsKey, { project, score });
      await withinLimit(forgotten, this.#timings.commandMs);
    } catch (error) {
      this.#logger.warn(
        { err: error, project },
        'an empty project was not removed from the index; a later round repeats it',
      );
    }
  }

  /** Reaps everything that is due in one project, in several calls. Every affected client is notified in the same round. */
  async #project(project: string, pauseMs: number, settled: boolean): Promise<ProjectState> {
    let answer = await this.#reap(project, pauseMs, settled);
    for (let call = 1; call < MOST_CALLS && answer.changes >= MOST; call++)
      answer = await this.#reap(project, pauseMs, settled);
    return answer.state;
  }

  async #reap(project: string, pauseMs: number, settled: boolean): Promise<Reaped> {
    const { leaseMs, workerGraceMs, handoverMs, staleMs, commandMs } = this.#timings;
    const args = { pauseMs, leaseMs, workerGraceMs, handoverMs, most: MOST, staleMs, removeEmpty: settled };
    const reaped = await withinLimit(runScript(this.#redis, reapScript, project, args), commandMs);
    this.#deliveries.handOver(project, reaped.due);
    // If the dispatchers are behind by more than the handover time, the jobs are in the queue. Adding them again would only lengthen it.
    if (reaped.overdue.length > 0 && (await this.#deliveries.backlogMs()) > handoverMs) {
      return { ...reaped, state: 'open' };
    }
    for (const { runId, attempt } of reaped.overdue) {
      this.#deliveries.add({ project, runId, attempt }, 0).catch((error: unknown) => {
        this.#logger.warn(
          { err: error, runId },
          'an overdue delivery was not added to the queue; a later round repeats it',
        );
      });
    }
    return reaped;
  }
}
