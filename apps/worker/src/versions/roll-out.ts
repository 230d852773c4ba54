// Contract 7, "Versions": this worker's part in the roll-out of a version: load, start beside the active version, report.
import type { ErrorFields } from '@inference-proxy/contracts';
import { retry } from '@inference-proxy/retry';
import type { DeploymentFeed, VersionReport } from '@inference-proxy/store';
import type { AppVersions } from '../deployments/versions.ts';
import type { VersionLoader } from './version-loader.ts';

const RETRY_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

interface RollOutLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
}

export interface RollOutParts {
  readonly feed: Pick<DeploymentFeed, 'report'>;
  readonly loader: VersionLoader;
  readonly versions: AppVersions;
  readonly logger: RollOutLogger;
}

export class RollOut {
  readonly #stopped = new AbortController();
  /** Reports are sent one after the other. */
  #reporting: Promise<unknown> = Promise.resolve();
  #reports = 0;

  readonly #parts: RollOutParts;

  constructor(
    parts: RollOutParts,
    /** The target, and the number that identifies the roll-out. */
    readonly target: { readonly version: string; readonly number: string },
  ) {
    this.#parts = parts;
  }

  /** Begins. The roll-out never rejects: every failure is reported. */
  start(): void {
    this.#prepare().catch((error: unknown) => {
      if (!this.#stopped.signal.aborted) this.#fail({ code: 'internal', message: String(error) });
    });
  }

  /** Ends the tries and the reports. The prepared version stays. */
  stop(): void {
    this.#stopped.abort();
  }

  async #prepare(): Promise<void> {
    const { loader, versions } = this.#parts;
    const { project, app } = versions.place;
    const { version } = this.target;
    const { signal } = this.#stopped;
    this.#report('preparing', ['fetching the bundle']);
    const load = () => loader.load(project, app, version);
    const failed = (error: unknown): void => this.#wait(error);
    const offered = await retry(load, { firstMs: RETRY_MS, lastMs: LONGEST_PAUSE_MS, signal, failed });
    if (signal.aborted) return;
    versions.waits();
    const { manifest, error } = offered;
    if (!manifest) {
      this.#fail(error);
      return;
    }
    this.#report('preparing', ['starting']);
    versions.prepare({ ...offered, manifest }, (startError) => {
      if (signal.aborted) return;
      if (startError) this.#fail(startError);
      else this.#report('ready', ['ready']);
    });
  }

  #wait(error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#parts.versions.waits(reason);
    this.#report('waiting', [`waiting: ${reason}`], reason);
  }

  #fail(error: ErrorFields | undefined): void {
    const { type, message = 'the version did not start', traceback } = error ?? {};
    const reason = type === undefined ? message : `${type}: ${message}`;
    this.#report('failed', [...(traceback?.trimEnd().split('\n') ?? []), `failed: ${reason}`], reason);
  }

  #report(step: VersionReport['step'], lines: readonly string[], reason?: string): void {
    const { feed, versions, logger } = this.#parts;
    const { project, app } = versions.place;
    const time = new Date().toISOString();
    const report = {
      app,
      version: this.target.version,
      rollOut: this.target.number,
      number: ++this.#reports,
      step,
      ...(reason !== undefined && { reason }),
      lines: lines.map((text) => ({ time, text })),
    };
    logger.info({ project, app, version: report.version, step, reason }, 'version in roll-out');
    const { signal } = this.#stopped;
    const failed = (err: unknown): void =>
      logger.warn({ err, project, app }, 'reporting the state of a version failed; retrying');
    this.#reporting = this.#reporting
      .then(() => retry(() => feed.report(project, report), { firstMs: RETRY_MS, signal, failed }))
      // Rejects only after the stop.
      .catch(() => {});
  }
}
