// Contract 7: the worker's view of the deployed apps. The worker learns of a change at once by a message, and looks again after a silence.
import type { Redis } from 'ioredis';
import { deployedKey, names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { runScript } from '../scripts.ts';
import { DeployedChannel } from './deployed-channel.ts';
import { type Deployment, deploymentOf } from './version-record.ts';
import { reportScript, type VersionReport } from './version-report.ts';
import { valuesOf } from './version-store.ts';

export interface DeploymentFeedOptions {
  readonly commands: Redis;
  /** A connection that only subscribes. */
  readonly subscriber: Redis;
  readonly workerId: string;
  /** Time limit of a command, ms. */
  readonly commandMs: number;
}

/** A version's bundle. */
export interface BundleName {
  readonly digest: string;
  /** Bytes of the archive. */
  readonly size: number;
}

export class DeploymentFeed {
  /** Called when the versions of a project may have changed; of all projects, if none is given. */
  onChange: (project?: string) => void = () => {};

  readonly #options: DeploymentFeedOptions;
  readonly #channel: DeployedChannel;

  constructor(options: DeploymentFeedOptions) {
    this.#options = options;
    this.#channel = new DeployedChannel(options.subscriber, (project) => this.onChange(project));
  }

  /** Subscribes. Rejects with the error of Redis; a reconnect subscribes again. */
  listen(): Promise<void> {
    return this.#channel.listen();
  }

  close(): void {
    this.#channel.close();
  }

  /** Returns the projects that have versions. @throws ServiceError `unavailable` */
  projects(): Promise<string[]> {
    return this.#within(this.#options.commands.smembers(deployedKey));
  }

  /** Returns the deployments of a project. @throws ServiceError `unavailable` */
  async deployments(project: string): Promise<Deployment[]> {
    const prefix = projectPrefix(project);
    const { commands } = this.#options;
    const apps = await this.#within(commands.smembers(prefix + names.deployed));
    if (apps.length === 0) return [];
    const pipeline = commands.pipeline();
    for (const app of apps) pipeline.hgetall(prefix + names.deployment + app);
    const found = valuesOf(await this.#within(pipeline.exec())) as Record<string, string>[];
    return apps.map((app, at) => deploymentOf(app, found[at] ?? {}));
  }

  /** Returns the bundle of a version, or undefined for an unknown version. @throws ServiceError `unavailable` */
  async bundle(project: string, app: string, version: string): Promise<BundleName | undefined> {
    const key = `${projectPrefix(project)}${names.version}${app}:${version}`;
    const [digest, size] = await this.#within(this.#options.commands.hmget(key, 'bundle', 'size'));
    return digest ? { digest, size: Number(size) } : undefined;
  }

  /** Reports a step. A repeat with the same number does no harm. @throws ServiceError `unavailable` */
  async report(project: string, report: Omit<VersionReport, 'workerId'>): Promise<'current' | 'ended' | 'stale'> {
    const { commands, workerId } = this.#options;
    const answer = await this.#within(runScript(commands, reportScript, project, { ...report, workerId }));
    await this.#within(commands.spublish(deployedKey, project));
    return answer;
  }

  #within<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.#options.commandMs);
  }
}
