// Ends what nobody ends any more (a worker, a gateway or a job was lost). Runs in every gateway; doubles are harmless.
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { projectsKey } from '../keys.ts';
import { runScript } from '../scripts.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';

/** Runs handled at most per kind and call: a call stays short. */
const MOST = 200;
/** A project where nothing is open is still visited, but only every so many rounds. */
const IDLE_ROUNDS = 30;

export class Reaper {
  private timer: NodeJS.Timeout | undefined;
  private round = 0;
  private running = false;
  /** Projects found idle, with the score of the index at that time: a newer score means new runs. */
  private readonly idle = new Map<string, string>();

  constructor(
    private readonly redis: Redis,
    private readonly deliveries: DeliveryQueue,
    private readonly logger: StoreLogger,
    private readonly timings: StoreTimings,
  ) {}

  start(): void {
    this.timer ??= setInterval(() => void this.once(), this.timings.reapMs);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** One round over all projects with something open. */
  async once(): Promise<void> {
    if (this.running) return;
    this.running = true;
    try {
      this.round++;
      const projects = await withinLimit(
        this.redis.zrange(projectsKey, '0', '-1', 'WITHSCORES'),
        this.timings.commandMs,
      );
      for (let at = 0; at < projects.length; at += 2) {
        const project = projects[at] as string;
        const score = projects[at + 1] as string;
        if (this.idle.get(project) === score && this.round % IDLE_ROUNDS !== 0) continue;
        if (await this.project(project)) this.idle.set(project, score);
        else this.idle.delete(project);
      }
    } catch (error) {
      this.logger.warn({ err: error }, 'reaping failed; tried again in a moment');
    } finally {
      this.running = false;
    }
  }

  /** @returns true when nothing is open in the project */
  private async project(project: string): Promise<boolean> {
    const { timings } = this;
    const args = [timings.pauseMs, timings.leaseMs, timings.workerGraceMs, timings.handoverMs, MOST, timings.staleMs];
    const [idle, due, overdue] = (await withinLimit(
      runScript(this.redis, 'reap', project, args),
      timings.commandMs,
    )) as [number, Buffer[], [id: Buffer, attempt: number][], number];
    this.deliveries.handOver(project, due.map(String));
    for (const [id, attempt] of overdue) {
      this.deliveries.add({ project, runId: id.toString(), attempt }, 0).catch((error: unknown) => {
        this.logger.warn({ err: error, runId: id.toString() }, 'an overdue delivery was not handed out; tried again');
      });
    }
    return idle === 1;
  }
}
