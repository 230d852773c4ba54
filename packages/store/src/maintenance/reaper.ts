// Ends runs of dead workers and gateways, and repeats lost jobs (reap.lua). Runs in every gateway. Doubles are harmless.
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { projectsKey } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { runScript, runScriptAt } from '../scripts.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { forgetProjectScript } from './forget-project.ts';
import { hasTurn, IDLE_ROUNDS, isSettled, type MaintenanceParts, type ProjectIndex } from './project-index.ts';
import { type ProjectState, type Reaped, reapScript } from './reap.ts';
import type { Task } from './rounds.ts';

/** Runs handled at most per kind and call, so that a call stays short. */
const MOST = 200;
/** Calls in a row for one project. Further runs wait for the next round. */
const MOST_CALLS = 50;
/** A gap of this many rounds between two reaps of an idle project is normal on a busy machine. It is not a pause of Redis. */
const IDLE_GAP_ROUNDS = 2 * IDLE_ROUNDS;

export class Reaper implements Task {
  readonly everyMs: number;
  #round = 0;
  /** Last time at which Redis answered (monotonic ms). */
  #answeredAt = Number.NEGATIVE_INFINITY;

  readonly #redis: Redis;
  readonly #deliveries: DeliveryQueue;
  readonly #logger: StoreLogger;
  readonly #timings: StoreTimings;
  readonly #index: ProjectIndex;

  constructor({ redis, logger, timings, projects }: MaintenanceParts, deliveries: DeliveryQueue) {
    this.everyMs = timings.reapMs;
    this.#index = projects;
    this.#redis = redis;
    this.#deliveries = deliveries;
    this.#logger = logger;
    this.#timings = timings;
  }

  /** Visits all projects with something open. */
  async run(): Promise<void> {
    try {
      this.#round++;
      const projects = await this.#index.read();
      const now = performance.now();
      if (now - this.#answeredAt > this.#timings.pauseMs) this.#index.wake();
      this.#answeredAt = now;
      for (const project of projects) {
        if (project.idle && !hasTurn(project, this.#round)) continue;
        const settled = isSettled(project);
        const { name, score } = project;
        const state = await this.#safely(name, project.idle, settled);
        // The score may have changed during the call.
        project.idle = state !== 'open' && settled && project.score === score;
        if (state === 'empty' && settled) await this.#forget(name, score);
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
