// Unpacked versions for tests of environments.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { readManifest } from '../../deployments/manifest.ts';
import type { BuildLimits } from '../build-step.ts';
import { Environments, type EnvironmentsOptions, type PreparedVersion } from '../environments.ts';

const LIMITS: BuildLimits = { timeoutMs: 170_000, memoryBytes: 2 ** 32 };
/** Settings of this machine that would change the tests. */
const FOREIGN = /^(PIP_|UV_|npm_config_)/i;

export interface Prepared extends PreparedVersion {
  readonly lines: readonly string[];
}

export interface VersionSpec {
  readonly project?: string;
  readonly app?: string;
  readonly signal?: AbortSignal;
  readonly log?: (lines: readonly string[]) => void;
}

export class Versions {
  readonly root: string;
  #made = 0;

  private constructor(root: string) {
    this.root = root;
  }

  static async make(): Promise<Versions> {
    return new Versions(await mkdtemp(join(tmpdir(), 'environments-')));
  }

  remove(): Promise<void> {
    return rm(this.root, { recursive: true, force: true });
  }

  /** @param settings variables of the worker, such as `PIP_INDEX_URL` */
  environments(
    settings: Readonly<Record<string, string>>,
    { limits, ...more }: Partial<Omit<EnvironmentsOptions, 'limits'>> & { limits?: Partial<BuildLimits> } = {},
  ): Environments {
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !FOREIGN.test(name)));
    return new Environments({
      folder: join(this.root, 'environments'),
      maxBytes: 2 ** 40,
      limits: { ...LIMITS, ...limits },
      allowCommands: false,
      environment: { ...own, ...settings },
      logger: { info: () => {}, warn: () => {} },
      ...more,
    });
  }

  /** Unpacks a version with these files, and prepares it. */
  async prepare(environments: Environments, files: Readonly<Record<string, string>>, spec: VersionSpec = {}) {
    const version = `v${++this.#made}`;
    const folder = join(this.root, 'apps', version);
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    return this.again(environments, folder, { version, ...spec });
  }

  /** Prepares a version that was unpacked before. */
  async again(
    environments: Environments,
    folder: string,
    {
      project = 'demo',
      app = 'app',
      version = 'v',
      signal = new AbortController().signal,
      log = () => {},
    }: VersionSpec & { version?: string } = {},
  ): Promise<Prepared> {
    const lines: string[] = [];
    const read = await readManifest(folder, 1e6);
    const progress = {
      signal,
      log: (texts: readonly string[]): void => {
        lines.push(...texts);
        log(texts);
      },
    };
    return { ...(await environments.prepare({ project, app, version, folder, ...read }, progress)), lines };
  }
}

/** Runs Python code in the environment of a version, and returns what it prints. */
export async function pythonIn({ folder }: PreparedVersion, code: string): Promise<string> {
  const { stdout } = await promisify(execFile)(join(folder, '.venv/bin/python'), ['-c', code], { cwd: folder });
  return stdout.trim();
}

export const textOf = (folder: string, name: string): Promise<string> => readFile(join(folder, name), 'utf8');
