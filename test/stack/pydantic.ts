// Virtual environments with packages from PyPI, for the tests of types. They stay in .data. Remove them to fetch newer versions.

import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder } from '@inference-proxy/supervisor';

const run = promisify(execFile);
const INSTALL_MS = 120_000;

/** The tested versions: the last 1.x, and the newest 2.x. */
const WANTED = { 'pydantic 1': 'pydantic>=1.10,<2', 'pydantic 2': 'pydantic>=2,<3' } as const;

type PydanticVersion = keyof typeof WANTED;

/**
 * Returns the folder of a virtual environment, or the reason why there is none.
 *
 * @param packages as pip names them
 * @param modules the modules that the environment must have
 */
export async function pythonEnvironment(
  name: string,
  packages: readonly string[],
  modules: readonly string[],
  cache = dataFolder(),
): Promise<{ venv: string } | { missing: string }> {
  const venv = join(cache, name);
  if (await works(venv, modules)) return { venv };
  await mkdir(cache, { recursive: true });
  // The files of an environment contain its path. So the environment cannot be moved later.
  await rm(venv, { recursive: true, force: true });
  try {
    await run('python3', ['-m', 'venv', venv], { timeout: INSTALL_MS });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1', ...packages];
    await run(join(venv, 'bin', 'python'), pip, { timeout: INSTALL_MS });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    await rm(venv, { recursive: true, force: true });
    return {
      missing: `${packages.join(', ')} could not be installed: ${(stderr || message).trim().split('\n').at(-1)}`,
    };
  }
  return { venv };
}

/** An environment of an app's process: without pydantic, or with a version of pydantic. */
export interface PydanticEnvironment {
  /** A name for an app in this environment. */
  readonly name: string;
  /** Absent: the machine's interpreter. */
  readonly venv: string | undefined;
  /** Why the environment cannot be made. Its tests are skipped. */
  readonly missing: string | undefined;
  /** The first lines of an app in this environment. */
  readonly prelude: string;
}

/** Returns the environments without pydantic, with pydantic 1 and with pydantic 2. Prints why an environment is missing. */
export async function pydanticEnvironments(): Promise<PydanticEnvironment[]> {
  // The machine's interpreter may have pydantic.
  const prelude = 'import sys\nsys.modules["pydantic"] = None\n';
  const environments: PydanticEnvironment[] = [{ name: 'standard', venv: undefined, missing: undefined, prelude }];
  for (const version of Object.keys(WANTED) as PydanticVersion[]) {
    const found = await pythonEnvironment(version.replace(' ', '-'), [WANTED[version]], ['pydantic']);
    const missing = 'missing' in found ? found.missing : undefined;
    if (missing !== undefined) process.stderr.write(`The tests of types with ${version} are skipped: ${missing}\n`);
    const venv = 'venv' in found ? found.venv : undefined;
    environments.push({ name: version.replace(' ', '-'), venv, missing, prelude: '' });
  }
  return environments;
}

async function works(venv: string, modules: readonly string[]): Promise<boolean> {
  return run(join(venv, 'bin', 'python'), ['-c', `import ${modules.join(', ')}`]).then(
    () => true,
    () => false,
  );
}
