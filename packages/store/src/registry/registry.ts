// Contract 7, "Apps": the apps of a project. Workers announce them. Gateways keep them in memory, follow a channel, and read them again at times.
import type { AppDescription } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix, projectsKey } from '../keys.ts';
import type { Task } from '../maintenance/rounds.ts';
import { ProjectChannels, withinLimit } from '../redis.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import type { ReplicaCounts } from './app-counts.ts';

/**
 * Announces an app's current state to every gateway, unless the stored description is the same. If the app is not ready at this worker and other workers serve it, the stored
 * description does not change: the trouble of one worker must not remove the app.
 *
 * @param replicas the app's processes at this worker. Absent: their numbers stay.
 */
export async function announce(
  redis: Redis,
  project: string,
  app: AppDescription,
  workerId: string,
  replicas?: ReplicaCounts,
): Promise<void> {
  const prefix = projectPrefix(project);
  if (replicas) await redis.hset(prefix + names.replicas + app.app, workerId, `${replicas.ready} ${replicas.desired}`);
  if (app.state === 'broken') await redis.zrem(prefix + names.serving + app.app, workerId);
  const stored = await redis.hget(prefix + names.apps, app.app);
  if (app.state !== 'ready' && stored !== null) {
    const others = (await serversOf(redis, prefix, app.app)).filter((other) => other !== workerId);
    if (others.length > 0) return;
  }
  const text = JSON.stringify(app);
  const indexed = redis.zadd(projectsKey, Date.now(), project);
  if (stored !== text) {
    await redis.hset(prefix + names.apps, app.app, text);
    await redis.spublish(prefix + names.announced, text);
  }
  await indexed;
}

/** Removes an app that no worker serves any longer. The app becomes unknown. */
export async function withdraw(redis: Redis, project: string, app: string, workerId: string): Promise<void> {
  const prefix = projectPrefix(project);
  await redis.zrem(prefix + names.serving + app, workerId);
  await redis.hdel(prefix + names.replicas + app, workerId);
  if ((await serversOf(redis, prefix, app)).length > 0) return;
  await redis.del(prefix + names.replicas + app);
  await redis.hdel(prefix + names.apps, app);
  await redis.spublish(prefix + names.announced, JSON.stringify({ app, gone: true }));
}

/** Returns the workers that serve an app, by their leases. */
async function serversOf(redis: Redis, prefix: string, app: string): Promise<string[]> {
  const [seconds] = await redis.time();
  return redis.zrangebyscore(prefix + names.serving + app, Number(seconds) * 1000, '+inf');
}

type Announcement = AppDescription | { readonly app: string; readonly gone: true };

/**
 * A gateway's view of the apps. An unchanged announcement stays the same object, and so do the functions of an app whose state changes:
 * the gateway keeps what it compiled from them.
 */
export class Registry implements Task {
  readonly everyMs: number;
  readonly #projects = new Map<string, Map<string, AppDescription>>();
  /** The text of each announcement in `#projects`. */
  readonly #texts = new WeakMap<AppDescription, string>();
  /** By project, for each read under way: the announcements since the read began. */
  readonly #reads = new Map<string, Set<Announcement[]>>();
  /** By project: resolved at the next announcement. */
  readonly #changes = new Map<string, PromiseWithResolvers<void>>();
  readonly #channels: ProjectChannels;

  readonly #options: { commands: Redis; subscriber: Redis; logger: StoreLogger; timings: StoreTimings };

  constructor(options: { commands: Redis; subscriber: Redis; logger: StoreLogger; timings: StoreTimings }) {
    this.#options = options;

    this.everyMs = options.timings.attendMs;
    this.#channels = new ProjectChannels({
      ...options,
      name: names.announced,
      onMessage: (project, message) => this.#announced(project, message),
      onRestored: (project) => void this.#refresh(project),
    });
  }

  /** Stops listening. */
  close(): void {
    this.#channels.close();
  }

  /** Returns the project's apps by name. The map is empty for a project without announcements. */
  apps(project: string): Promise<ReadonlyMap<string, AppDescription>> {
    const known = this.#projects.get(project);
    return known ? Promise.resolve(known) : this.#load(project);
  }

  /** Resolves at the next announcement of the project, or when its apps have been read again. */
  changed(project: string): Promise<void> {
    const change = this.#changes.get(project) ?? Promise.withResolvers<void>();
    this.#changes.set(project, change);
    return change.promise;
  }

  #notify(project: string): void {
    this.#changes.get(project)?.resolve();
    this.#changes.delete(project);
  }

  async #load(project: string): Promise<ReadonlyMap<string, AppDescription>> {
    const limit = this.#options.timings.commandMs;
    const first = await this.#read(project);
    // A project without announcements costs one read per call, and no memory.
    if (first.size === 0) return first;
    await withinLimit(this.#channels.subscribe(project), limit);
    const apps = await this.#read(project);
    const known = this.#projects.get(project);
    if (known) return known;
    this.#projects.set(project, apps);
    return apps;
  }

  /** Returns the project's stored apps. Announcements during the read are applied too, because the store may have answered before them. */
  async #read(project: string): Promise<Map<string, AppDescription>> {
    const since: Announcement[] = [];
    const reads = this.#reads.get(project) ?? new Set();
    this.#reads.set(project, reads.add(since));
    try {
      const key = projectPrefix(project) + names.apps;
      const texts = await withinLimit(this.#options.commands.hgetall(key), this.#options.timings.commandMs);
      const apps = new Map(
        Object.entries(texts).map(([app, text]) => [app, this.#parsed(project, text, app) as AppDescription]),
      );
      for (const announcement of since) apply(apps, announcement);
      return apps;
    } finally {
      reads.delete(since);
      if (reads.size === 0) this.#reads.delete(project);
    }
  }

  /** Returns the announcement in a text. Unchanged descriptions and unchanged functions stay the same objects. */
  #parsed(project: string, text: string, app?: string): Announcement {
    const known = this.#projects.get(project);
    const kept = app === undefined ? undefined : known?.get(app);
    if (kept !== undefined && this.#texts.get(kept) === text) return kept;
    const announcement = JSON.parse(text) as Announcement;
    if ('gone' in announcement) return announcement;
    const functions = known?.get(announcement.app)?.functions;
    const isSame = functions !== undefined && JSON.stringify(functions) === JSON.stringify(announcement.functions);
    const description = isSame ? { ...announcement, functions } : announcement;
    this.#texts.set(description, text);
    return description;
  }

  /** Reads all projects again, because announcements may be lost. */
  async run(): Promise<void> {
    await Promise.all([...this.#projects.keys()].map((project) => this.#refresh(project)));
  }

  async #refresh(project: string): Promise<void> {
    // Two reads at once could finish in the wrong order, and the older result would overwrite the newer result.
    if (!this.#projects.has(project) || this.#reads.has(project)) return;
    try {
      const apps = await this.#read(project);
      if (apps.size > 0) this.#projects.set(project, apps);
      else await this.#release(project);
      this.#notify(project);
    } catch (error) {
      this.#options.logger.warn(
        { err: error, project },
        'the apps of a project could not be read again; the last copy stays in use',
      );
    }
  }

  /** Forgets a project whose apps were all withdrawn. The next call reads the project again. */
  async #release(project: string): Promise<void> {
    this.#projects.delete(project);
    await withinLimit(this.#channels.leave(project), this.#options.timings.commandMs);
  }

  #announced(project: string, message: Buffer): void {
    const announcement = this.#parsed(project, message.toString());
    for (const since of this.#reads.get(project) ?? []) since.push(announcement);
    const apps = this.#projects.get(project);
    if (apps) apply(apps, announcement);
    this.#notify(project);
  }
}

function apply(apps: Map<string, AppDescription>, announcement: Announcement): void {
  if ('gone' in announcement) apps.delete(announcement.app);
  else apps.set(announcement.app, announcement);
}
