// Contract 7, "Dependencies": prepares a deployed version for its start. The packages that the version names are installed into an
// environment, and links in the version's folder name the environment: `.venv` and `node_modules`.
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Manifest, ReadManifest } from '../deployments/manifest.ts';
import { DEFAULT_PATH } from '../runtimes/clean-env.ts';
import type { Runtime } from '../runtimes/runtime.ts';
import { commandSteps, refusedCommands } from './build-commands.ts';
import { BuildFailed } from './build-failed.ts';
import { type BuildLimits, type BuildLog, type BuildStep, runStep } from './build-step.ts';
import { buildVariables } from './build-variables.ts';
import { type Build, EnvironmentCache, type EnvironmentCacheOptions } from './environment-cache.ts';
import { maskOf } from './masked.ts';
import { nodePackages } from './node-environment.ts';
import type { PackageList } from './package-list.ts';
import { pythonPackages } from './python-environment.ts';
import { unsupported } from './unsupported.ts';
import { brings, copyApp, linkTo } from './version-folder.ts';

export interface EnvironmentsOptions {
  /** Folder of the environments. No other worker uses it. */
  readonly folder: string;
  /** `ENVIRONMENTS_MAX_BYTES`. */
  readonly maxBytes: number;
  readonly limits: BuildLimits;
  /** Whether commands of manifests run. */
  readonly allowCommands: boolean;
  /** The worker's environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logger: EnvironmentCacheOptions['logger'];
}

/** An unpacked version of an app. */
export interface UnpackedVersion extends ReadManifest {
  readonly project: string;
  readonly app: string;
  readonly version: string;
  /** Absolute path. */
  readonly folder: string;
}

/** A version that can be started. */
export interface PreparedVersion {
  readonly manifest: Manifest;
  readonly folder: string;
}

export interface BuildProgress {
  readonly log: BuildLog;
  /** Fires when the version is not needed any more. */
  readonly signal: AbortSignal;
}

/** Changes whenever an environment of an earlier release cannot be used. */
const FORMAT = 1;
/** The copy of the app's folder in an environment that depends on the app's code. */
const APP = 'app';

export class Environments {
  readonly #options: EnvironmentsOptions;
  readonly #cache: EnvironmentCache;
  /** By folder of a prepared version: its environment. */
  readonly #used = new Map<string, string>();

  constructor(options: EnvironmentsOptions) {
    this.#options = options;
    this.#cache = new EnvironmentCache(options);
  }

  /** Keeps the environment of a prepared version until the runtime has closed. A version without an environment is ignored. */
  keep(folder: string, runtime: Pick<Runtime, 'state'>): void {
    const environment = this.#used.get(folder);
    if (environment !== undefined) this.#cache.keep(environment, runtime);
  }

  /**
   * Builds the environment of a version, unless the same environment exists.
   *
   * @throws BuildFailed with the reason for the app's author; the reason of the signal
   */
  async prepare(version: UnpackedVersion, { log, signal }: BuildProgress): Promise<PreparedVersion> {
    const { project, app, folder, manifest, build } = version;
    log(unsupported(build));
    const refused = this.#options.allowCommands ? undefined : refusedCommands(build);
    if (refused !== undefined) throw new BuildFailed(refused);
    const lists = await this.#lists(version, log);
    const commands = [...build.before, ...build.after];
    if (lists.length === 0 && commands.length === 0) return { manifest, folder };
    // Such an environment contains a copy of the app, which is served.
    const isOwn = commands.length > 0 || lists.some(({ isLocal }) => isLocal);
    const identity = [FORMAT, lists.map((list) => list.identity)];
    const own = isOwn ? [project, app, version.version, build.before, build.after] : [];
    const key = createHash('sha256')
      .update(JSON.stringify([...identity, ...own]))
      .digest('hex');
    for (const { described } of lists) log([`the environment needs ${described}`]);
    const wanted = { key, project, build: this.#build(version, lists, isOwn) };
    const environment = await this.#cache.obtain(wanted, log, signal);
    const prepared = isOwn ? join(environment, APP) : folder;
    this.#used.set(prepared, environment);
    if (isOwn) return { manifest, folder: prepared };
    for (const { place } of lists) await linkTo(join(environment, place), join(folder, place));
    return { manifest, folder };
  }

  get #path(): string {
    return this.#options.environment.PATH ?? DEFAULT_PATH;
  }

  /** Returns the packages that the app does not bring along. */
  async #lists(version: UnpackedVersion, log: BuildLog): Promise<PackageList[]> {
    const { folder, manifest } = version;
    const found = [await pythonPackages(folder, version, this.#path), await nodePackages(folder, version)];
    const lists: PackageList[] = [];
    for (const list of found) {
      if (list === undefined) continue;
      const namesInterpreter = list.place === '.venv' && manifest.interpreter !== undefined;
      if (namesInterpreter) log(['no packages are installed: the manifest names an interpreter']);
      else if (await brings(folder, list.place)) log([`no packages are installed: the app brings ${list.place}`]);
      else lists.push(list);
    }
    return lists;
  }

  #build({ folder: source, build }: UnpackedVersion, lists: readonly PackageList[], isOwn: boolean): Build {
    const { limits, environment } = this.#options;
    return async (folder, log, stopped) => {
      const startedAt = performance.now();
      const temporary = join(folder, 'tmp');
      await mkdir(temporary);
      const from = isOwn ? join(folder, APP) : folder;
      if (isOwn) await copyApp(source, from);
      const env = buildVariables(environment, temporary);
      const masked = maskOf(env);
      const print: BuildLog = (lines) => log(lines.map(masked));
      const place = { folder, from, env };
      const { before, after } = commandSteps(build, place);
      const installs: BuildStep[] = [];
      for (const list of lists) installs.push(...(await list.steps(place)));
      const expiry = new AbortController();
      const timer = setTimeout(() => expiry.abort(), limits.timeoutMs);
      try {
        for (const step of [...before, ...installs, ...after]) {
          print([`running ${step.name}`]);
          await runStep(step, limits, { expired: expiry.signal, stopped }, print);
        }
      } catch (error) {
        throw error instanceof BuildFailed ? new BuildFailed(masked(error.message)) : error;
      } finally {
        clearTimeout(timer);
      }
      await rm(temporary, { recursive: true, force: true });
      log([`the environment was built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`]);
    };
  }
}
