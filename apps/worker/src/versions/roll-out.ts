// Contract 7, "Versions": this worker's part in the roll-out of a version: load, start beside the active version, report.
import type { ErrorFields } from '@inference-proxy/contracts';
import { retry } from '@inference-proxy/retry';
import type { CallCounts, DeploymentFeed, RollOutSteps, VersionReport } from '@inference-proxy/store';
import type { Manifest } from '../deployments/manifest.ts';
import type { OfferedVersion } from '../deployments/offered-version.ts';
import type { AppVersions } from '../deployments/versions.ts';
import { BuildFailed } from '../environments/build-failed.ts';
import { LogBatches } from './log-batches.ts';
import type { VersionLoader } from './version-loader.ts';

const RETRY_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** Interval of the reports about the calls of a version that gets calls in steps. */
const COUNT_MS = 1_000;

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
  #steps: RollOutSteps | undefined;
  #counts: CallCounts = { calls: 0, failed: 0 };
  #counting: NodeJS.Timeout | undefined;

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
    clearInterval(this.#counting);
  }

  async #prepare(): Promise<void> {
    const { loader, versions } = this.#parts;
    const { project, app } = versions.place;
    const { version } = this.target;
    const { signal } = this.#stopped;
    this.#report('preparing', ['fetching the bundle']);
    const log = new LogBatches((lines) => this.#send('preparing', lines));
    const load = (): Promise<OfferedVersion> =>
      loader
        .load(project, app, version, { log: (lines) => log.add(lines), signal })
        .catch((error: unknown) => unbuilt(version, error))
        .finally(() => log.flush());
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
    const decided = (startError?: ErrorFields): void => {
      if (signal.aborted) return;
      log.flush();
      if (startError) this.#fail(startError);
      else this.#ready(manifest);
    };
    versions.prepare({ ...offered, manifest }, decided, (lines) => log.add(lines));
  }

  /** Reports the version as ready, and the number of its calls if new calls move to the version in steps. */
  #ready({ rollOutMs, abortOnErrorRate }: Manifest): void {
    const { versions } = this.#parts;
    // A server that waits for its port cannot take calls beside the old version, so all calls move at once.
    const durationMs = versions.preparedCalls === undefined ? 0 : rollOutMs;
    this.#steps = { durationMs, abortOnErrorRate };
    this.#report('ready', ['ready']);
    if (durationMs === 0) return;
    this.#counting = setInterval(() => {
      const counts = versions.preparedCalls;
      if (counts === undefined || counts.calls === this.#counts.calls) return;
      this.#counts = counts;
      this.#send('ready', []);
    }, COUNT_MS);
  }

  #wait(error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#parts.versions.waits(reason);
    this.#report('waiting', [`waiting: ${reason}`], reason);
  }

  #fail(error: ErrorFields | undefined): void {
    const reason = error?.message ?? 'the version did not start';
    this.#report('failed', [`failed: ${reason}`], reason);
  }

  #report(step: VersionReport['step'], lines: readonly string[], reason?: string): void {
    const { versions, logger } = this.#parts;
    const { project, app } = versions.place;
    logger.info({ project, app, version: this.target.version, step, reason }, 'version in roll-out');
    this.#send(step, lines, reason);
  }

  #send(step: VersionReport['step'], lines: readonly string[], reason?: string): void {
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
      ...(this.#steps && { steps: this.#steps, counts: this.#counts }),
    };
    const { signal } = this.#stopped;
    const failed = (err: unknown): void =>
      logger.warn({ err, project, app }, 'reporting the state of a version failed; retrying');
    this.#reporting = this.#reporting
      .then(() => retry(() => feed.report(project, report), { firstMs: RETRY_MS, signal, failed }))
      // Rejects only after the stop.
      .catch(() => {});
  }
}

/** Returns the version that cannot start, if its build failed. Only a further deployment builds it again. @throws every other error */
function unbuilt(version: string, error: unknown): OfferedVersion {
  if (!(error instanceof BuildFailed)) throw error;
  const message = `the environment could not be built: ${error.message}`;
  return { version, manifest: undefined, error: { code: 'app_failed_to_start', message } };
}
