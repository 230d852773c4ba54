// Contract 7, "Versions": one deployed app on this worker. It serves the active version and takes part in the app's roll-out.
import { backOffMs, pause } from '@inference-proxy/retry';
import type { Deployment } from '@inference-proxy/store';
import { RollOut, type RollOutParts } from './roll-out.ts';

const RETRY = { firstMs: 500, lastMs: 10_000 };

export class DeployedApp {
  #active: string | undefined;
  /** Ends the load of the active version. */
  #loading: AbortController | undefined;
  #rollOut: RollOut | undefined;
  #isActivating = false;

  readonly #parts: RollOutParts;

  constructor(parts: RollOutParts) {
    this.#parts = parts;
  }

  get versions(): RollOutParts['versions'] {
    return this.#parts.versions;
  }

  /** Whether calls of the app may come: it has an active version, or will have one. */
  get isServed(): boolean {
    return this.#active !== undefined || this.#isActivating;
  }

  /** Follows the stored deployment. */
  follow({ active, rollOut }: Deployment): void {
    const { versions } = this.#parts;
    if (active !== undefined && active !== this.#active) this.#activate(active);
    this.#isActivating = rollOut?.mode === 'activate';
    if (rollOut?.number === this.#rollOut?.target.number) return;
    this.#rollOut?.stop();
    versions.dismiss();
    this.#rollOut = rollOut && new RollOut(this.#parts, rollOut);
    this.#rollOut?.start();
  }

  /** Ends the work on versions that do not serve. */
  stop(): void {
    this.#rollOut?.stop();
    this.#loading?.abort();
  }

  #activate(version: string): void {
    this.#active = version;
    this.#loading?.abort();
    this.#loading = undefined;
    if (this.#parts.versions.activate(version)) return;
    this.#loading = new AbortController();
    void this.#load(version, this.#loading.signal);
  }

  /** Loads the active version, which this worker has not prepared: the worker has just started, or was away. Tries until it succeeds. */
  async #load(version: string, signal: AbortSignal): Promise<void> {
    const { loader, versions, logger } = this.#parts;
    const { project, app } = versions.place;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const log = (lines: readonly string[]): void => {
          for (const line of lines) logger.info({ project, app, version }, line);
        };
        const offered = await loader.load(project, app, version, { log, signal });
        if (signal.aborted) return;
        versions.waits();
        versions.offer(offered);
        return;
      } catch (err) {
        if (signal.aborted) return;
        logger.warn({ err, project, app, version }, 'the active version could not be loaded; retrying');
        versions.waits(err instanceof Error ? err.message : String(err));
        await pause(backOffMs(failures, RETRY), signal);
      }
    }
  }
}
