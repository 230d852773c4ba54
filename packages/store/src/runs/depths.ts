// Reads figures for the gateway's metrics: queued runs, running runs, and the bytes in the store.
import type { Redis } from 'ioredis';
import { names, projectPrefix, projectsKey } from '../keys.ts';

export interface AppDepth {
  readonly app: string;
  /** Runs in the app's queue, and the time for which the oldest run has waited. */
  readonly queued: number;
  readonly oldestQueuedMs: number;
}

export interface ProjectDepth {
  readonly project: string;
  readonly running: number;
  /** Bytes that the project's runs take in Redis. */
  readonly bytes: number;
  readonly apps: readonly AppDepth[];
}

export interface StoreDepths {
  readonly projects: readonly ProjectDepth[];
  /** The bound is infinite until it is known. */
  readonly store: { readonly bytes: number; readonly boundBytes: number };
}

/** @param only reads this project; if absent, every project */
export async function readDepths(redis: Redis, only?: string): Promise<ProjectDepth[]> {
  const projects = only === undefined ? await redis.zrange(projectsKey, '0', '-1') : [only];
  const [seconds, micros] = await redis.time();
  const nowUs = Number(seconds) * 1e6 + Number(micros);
  return Promise.all(projects.map((project) => projectDepth(redis, project, nowUs)));
}

async function projectDepth(redis: Redis, project: string, nowUs: number): Promise<ProjectDepth> {
  const prefix = projectPrefix(project);
  const [queues, running, bytes] = await Promise.all([
    redis.hkeys(prefix + names.queues),
    redis.zcard(prefix + names.leases),
    redis.get(prefix + names.bytes),
  ]);
  const depths = queues.map(async (name): Promise<AppDepth> => {
    const queue = prefix + names.queue + name;
    const [queued, [, oldest]] = await Promise.all([redis.zcard(queue), redis.zrange(queue, '0', '0', 'WITHSCORES')]);
    const [app = name] = name.split('@');
    return { app, queued, oldestQueuedMs: oldest === undefined ? 0 : Math.max(0, (nowUs - Number(oldest)) / 1000) };
  });
  return { project, running, bytes: Math.max(0, Number(bytes ?? 0)), apps: byApp(await Promise.all(depths)) };
}

/** Returns one entry for each app. A deployed app has a queue for each version with queued runs. */
function byApp(depths: readonly AppDepth[]): AppDepth[] {
  return [...Map.groupBy(depths, ({ app }) => app)].map(([app, queues]) => ({
    app,
    queued: queues.reduce((sum, { queued }) => sum + queued, 0),
    oldestQueuedMs: Math.max(...queues.map(({ oldestQueuedMs }) => oldestQueuedMs)),
  }));
}
