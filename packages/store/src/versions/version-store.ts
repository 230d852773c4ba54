// Contract 7: the gateway's interface to the versions of apps. Versions have no retention.
import { ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { deployedKey, names, projectPrefix, REMOVING_MS, removingPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { runScript } from '../scripts.ts';
import { storeError } from '../store-error.ts';
import { deleteScript } from './app-delete.ts';
import { type AuditEntry, auditEntryOf, MOST_AUDIT_ENTRIES } from './audit-entry.ts';
import { type Activation, activateScript } from './version-activate.ts';
import { VersionChanges } from './version-changes.ts';
import { type Deployed, deployScript, type NewVersion } from './version-deploy.ts';
import {
  type ActivationRecord,
  activationOf,
  type Deployment,
  deploymentOf,
  type VersionRecord,
  type VersionState,
  versionRecord,
} from './version-record.ts';
import type { BuildLine } from './version-report.ts';

const VERSION = /^[0-9a-f]{8,64}$/;

/** Lines of a version's log. */
export interface VersionLog {
  readonly lines: BuildLine[];
  /** Number of old lines that were removed. */
  readonly cut: number;
  /** Number of all lines, with removed lines. */
  readonly total: number;
}

export class VersionStore {
  readonly #redis: Redis;
  readonly #changes: VersionChanges;
  readonly #limitMs: number;

  constructor(redis: Redis, subscriber: Redis, { commandMs }: { readonly commandMs: number }) {
    this.#redis = redis;
    this.#changes = new VersionChanges(subscriber);
    this.#limitMs = commandMs;
  }

  /**
   * Records a version and begins its roll-out. Its bundle must be in the bundle store.
   *
   * @throws ServiceError `unavailable`, also if the bundle was unused for long and is being removed now; `overloaded`
   */
  async deploy(project: string, version: NewVersion): Promise<Deployed> {
    // A record that names a removed bundle would harm a version that serves. So a removal under way refuses the deployment before its record.
    await this.#refuseRemoved(version.bundle);
    // The index is written first. A project without a version in it does no harm, but a version outside of it would never start.
    await this.#within(this.#redis.sadd(deployedKey, project));
    const deployed = await this.#within(runScript(this.#redis, deployScript, project, version));
    await this.#notify(project);
    // A removal that began since then: used-bundles.ts.
    await this.#refuseRemoved(version.bundle);
    return deployed;
  }

  /** Begins the roll-out of a version. Returns its state; undefined for an unknown version. @throws ServiceError `unavailable` */
  async activate(project: string, activation: Activation): Promise<VersionState | undefined> {
    const state = await this.#within(runScript(this.#redis, activateScript, project, activation));
    await this.#notify(project);
    return state;
  }

  /** Removes an app with its versions. Returns whether a version of it existed. @throws ServiceError `unavailable` */
  async delete(project: string, app: string): Promise<boolean> {
    const existed = await this.#within(runScript(this.#redis, deleteScript, project, app));
    await this.#notify(project);
    return existed;
  }

  /** Returns the names of the apps that have versions. @throws ServiceError `unavailable` */
  async apps(project: string): Promise<string[]> {
    return this.#within(this.#redis.smembers(projectPrefix(project) + names.deployed));
  }

  /** @throws ServiceError `unavailable` */
  async deployment(project: string, app: string): Promise<Deployment> {
    return deploymentOf(app, await this.#within(this.#redis.hgetall(projectPrefix(project) + names.deployment + app)));
  }

  /**
   * Returns a version by its name or by the beginning of its name.
   *
   * @throws ServiceError `conflict` for an ambiguous beginning, `unavailable`
   */
  async find(project: string, app: string, name: string): Promise<VersionRecord | undefined> {
    if (!VERSION.test(name)) return undefined;
    const prefix = projectPrefix(project);
    const all = await this.#within(this.#redis.zrange(prefix + names.versions + app, '0', '-1'));
    const [version, other] = all.filter((each) => each.startsWith(name));
    if (other !== undefined)
      throw new ServiceError('conflict', `Several versions begin with ${name}; give more digits.`);
    if (version === undefined) return undefined;
    const [found] = await this.#records(project, app, [version]);
    return found;
  }

  /** Returns the newest versions by the time of their last deployment. @throws ServiceError `unavailable` */
  async newest(project: string, app: string, most: number): Promise<VersionRecord[]> {
    const key = projectPrefix(project) + names.versions + app;
    const versions = await this.#within(this.#redis.zrange(key, '0', String(most - 1), 'REV'));
    return this.#records(project, app, versions);
  }

  /** Returns activations, newest first. @throws ServiceError `unavailable` */
  async activations(project: string, app: string): Promise<ActivationRecord[]> {
    const entries = await this.#within(this.#redis.lrange(projectPrefix(project) + names.activations + app, 0, -1));
    return entries.map(activationOf);
  }

  /**
   * Returns lines of a version's log, oldest first.
   *
   * @param after number of lines that the caller has
   * @throws ServiceError `unavailable`
   */
  async log(project: string, app: string, version: string, after = 0): Promise<VersionLog> {
    const prefix = projectPrefix(project);
    const id = `${app}:${version}`;
    const read = this.#redis
      .multi()
      .hget(prefix + names.version + id, 'cut')
      .lrange(prefix + names.buildLog + id, 0, -1)
      .exec();
    const [cutText, texts] = valuesOf(await this.#within(read)) as [string | null, string[]];
    const cut = Number(cutText ?? 0);
    const lines = texts.slice(Math.max(0, after - cut)).map(lineOf);
    return { lines, cut, total: cut + texts.length };
  }

  /** Resolves when the versions of a project may have changed, or when `signal` fires. */
  changed(project: string, signal: AbortSignal): Promise<void> {
    return this.#changes.next(project, signal);
  }

  /** Stops listening. */
  close(): void {
    this.#changes.close();
  }

  /** Writes an entry of the audit log. The newest entries are kept. @throws ServiceError `unavailable` */
  async audit(project: string, entry: AuditEntry): Promise<void> {
    const key = projectPrefix(project) + names.audit;
    const change = this.#redis
      .multi()
      .lpush(key, JSON.stringify(entry))
      .ltrim(key, 0, MOST_AUDIT_ENTRIES - 1);
    await this.#within(change.exec());
  }

  /** Returns entries of the audit log, newest first, from a place on. @throws ServiceError `unavailable` */
  async audited(project: string, from: number, most: number): Promise<AuditEntry[]> {
    const entries = this.#redis.lrange(projectPrefix(project) + names.audit, from, from + most - 1);
    return (await this.#within(entries)).map(auditEntryOf);
  }

  /** @throws ServiceError `unavailable` if a gateway removes the bundle now */
  async #refuseRemoved(bundle: string): Promise<void> {
    if ((await this.#within(this.#redis.exists(removingPrefix + bundle))) === 1)
      throw new ServiceError(
        'unavailable',
        'The bundle was removed from the bundle store at the same time. Deploy it again.',
        {
          retryAfterS: REMOVING_MS / 1000,
        },
      );
  }

  async #records(project: string, app: string, versions: readonly string[]): Promise<VersionRecord[]> {
    const prefix = projectPrefix(project);
    const pipeline = this.#redis.pipeline().hget(prefix + names.deployment + app, 'target');
    for (const version of versions) pipeline.hgetall(`${prefix}${names.version}${app}:${version}`);
    const [target, ...records] = valuesOf(await this.#within(pipeline.exec()));
    return versions.flatMap((version, at) => {
      const fields = records[at] as Record<string, string>;
      return versionRecord(app, version, fields, (target as string | null) ?? undefined) ?? [];
    });
  }

  /** Notifies the workers of a change. A worker that misses the message finds the change at its next look. */
  async #notify(project: string): Promise<void> {
    await this.#within(this.#redis.spublish(deployedKey, project));
  }

  #within<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.#limitMs);
  }
}

/** Returns the replies of a pipeline. @throws ServiceError if one of its commands failed */
export function valuesOf(replies: readonly (readonly [Error | null, unknown])[] | null): unknown[] {
  return (replies ?? []).map(([error, value]) => {
    if (error) throw storeError(error);
    return value;
  });
}

/** Reads a line of a version's log. Lines of the scripts have the time as a number. */
function lineOf(line: string): BuildLine {
  const { time, text } = JSON.parse(line) as { time: string | number; text: string };
  return { time: typeof time === 'number' ? new Date(time).toISOString() : time, text };
}
