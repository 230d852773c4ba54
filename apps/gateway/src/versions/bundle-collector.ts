// Contract 7: removes old versions, bundles that no version uses, and what interrupted uploads have left. One gateway at a time does this.
import type { BundleStore } from '@inference-proxy/bundles';
import type { Task, UsedBundles } from '@inference-proxy/store';

export interface BundleCollectorOptions {
  readonly bundles: BundleStore;
  readonly used: UsedBundles;
  /** `BUNDLE_RETENTION_S`, in ms. */
  readonly retentionMs: number;
  /** Time limit of an upload, ms. */
  readonly uploadMs: number;
  readonly logger: { info(fields: object, text: string): void; warn(fields: object, text: string): void };
}

const LONGEST_PERIOD_MS = 600_000;
const SHORTEST_PERIOD_MS = 500;
/** Bundles of one notice. Their removal takes seconds, and the notice holds for a minute. */
const AT_A_TIME = 50;
const REMOVAL_MS = 30_000;

export class BundleCollector implements Task {
  readonly everyMs: number;

  readonly #options: BundleCollectorOptions;

  constructor(options: BundleCollectorOptions) {
    this.#options = options;
    this.everyMs = Math.min(Math.max(options.retentionMs / 4, SHORTEST_PERIOD_MS), LONGEST_PERIOD_MS);
  }

  async run(): Promise<void> {
    const { used, logger } = this.#options;
    try {
      if (await used.takeTurn(this.everyMs)) await this.#collect();
    } catch (err) {
      logger.warn({ err }, 'old versions and bundles were not removed; a later round repeats it');
    }
  }

  async #collect(): Promise<void> {
    const { bundles, used, retentionMs, uploadMs, logger } = this.#options;
    const versions = await used.trim();
    // A longer upload has failed. Its gateway has died, or it would have removed the bytes.
    const interrupted = await bundles.removeInterrupted(Math.max(retentionMs, 2 * uploadMs));
    const stored: string[] = [];
    for await (const digest of bundles.list()) stored.push(digest);
    const needed = await used.used();
    const unused = stored.filter((digest) => !needed.has(digest));
    const due = await used.unusedFor(retentionMs, unused);
    let removed = 0;
    for (let at = 0; at < due.length; at += AT_A_TIME) removed += await this.#remove(due.slice(at, at + AT_A_TIME));
    if (versions + interrupted + removed > 0)
      logger.info({ versions, interrupted, bundles: removed }, 'removed old versions and unused bundles');
  }

  async #remove(digests: readonly string[]): Promise<number> {
    const until = performance.now() + REMOVAL_MS;
    let removed = 0;
    for (const digest of await this.#options.used.removing(digests)) {
      // After this time a deployment may not find the notice. A later round removes the other bundles.
      if (performance.now() > until) break;
      await this.#options.bundles.remove(digest);
      removed++;
    }
    return removed;
  }
}
