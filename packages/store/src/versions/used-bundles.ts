// Contract 7: which bundles the versions use, and since when others are unused. One gateway at a time removes old versions and unused bundles.
import type { Redis } from 'ioredis';
import { collectingKey, deployedKey, names, projectPrefix, REMOVING_MS, removingPrefix, unusedKey } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { runScript } from '../scripts.ts';
import { valuesOf } from './version-store.ts';
import { trimScript } from './versions-trim.ts';

/** Versions of an app that stay for a rollback (contract 7). */
const KEPT_VERSIONS = 10;

export class UsedBundles {
  readonly #redis: Redis;
  readonly #limitMs: number;

  constructor(redis: Redis, { commandMs }: { readonly commandMs: number }) {
    this.#redis = redis;
    this.#limitMs = commandMs;
  }

  /** Takes the turn to collect for a time. Returns false if another gateway has it. @throws ServiceError `unavailable` */
  async takeTurn(ms: number): Promise<boolean> {
    return (await this.#within(this.#redis.set(collectingKey, '1', 'PX', Math.round(ms), 'NX'))) === 'OK';
  }

  /** Removes old versions of all apps. Returns their number. @throws ServiceError `unavailable` */
  async trim(): Promise<number> {
    let removed = 0;
    for (const project of await this.#projects())
      removed += await this.#within(runScript(this.#redis, trimScript, project, KEPT_VERSIONS));
    return removed;
  }

  /** Returns the digests of the bundles of all versions. @throws ServiceError `unavailable` */
  async used(): Promise<Set<string>> {
    const digests = new Set<string>();
    for (const project of await this.#projects()) {
      const prefix = projectPrefix(project);
      for (const app of await this.#within(this.#redis.smembers(prefix + names.deployed))) {
        const versions = await this.#within(this.#redis.zrange(prefix + names.versions + app, '0', '-1'));
        const pipeline = this.#redis.pipeline();
        for (const version of versions) pipeline.hget(`${prefix}${names.version}${app}:${version}`, 'bundle');
        for (const digest of valuesOf(await this.#within(pipeline.exec()))) digests.add(String(digest));
      }
    }
    return digests;
  }

  /**
   * Records which bundles are unused. Returns those that have been unused for longer than `ms`.
   *
   * @throws ServiceError `unavailable`
   */
  async unusedFor(ms: number, unused: readonly string[]): Promise<string[]> {
    const now = Date.now();
    const before = await this.#within(this.#redis.zrange(unusedKey, '0', '-1'));
    const still = new Set(unused);
    const change = this.#redis.pipeline();
    for (const digest of before) if (!still.has(digest)) change.zrem(unusedKey, digest);
    for (const digest of unused) change.zadd(unusedKey, 'NX', now, digest);
    valuesOf(await this.#within(change.exec()));
    return this.#within(this.#redis.zrangebyscore(unusedKey, '-inf', now - ms));
  }

  /**
   * Writes notices of the removal of bundles, and returns the unused bundles among them. The caller may remove the unused bundles within
   * half of {@link REMOVING_MS}. A deployment that is recorded later finds its notice. This call sees the deployments before.
   *
   * @throws ServiceError `unavailable`
   */
  async removing(digests: readonly string[]): Promise<string[]> {
    const notices = this.#redis.pipeline();
    for (const digest of digests) notices.set(removingPrefix + digest, '1', 'PX', REMOVING_MS);
    valuesOf(await this.#within(notices.exec()));
    const used = await this.used();
    return digests.filter((digest) => !used.has(digest));
  }

  #projects(): Promise<string[]> {
    return this.#within(this.#redis.smembers(deployedKey));
  }

  #within<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.#limitMs);
  }
}
