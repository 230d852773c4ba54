// Schemathesis, which calls an API from its document: from `.data`, or installed from PyPI into a virtual environment there.
import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder } from '@inference-proxy/supervisor';

const run = promisify(execFile);
const VERSION = '4.32.5';
const INSTALL_MS = 240_000;

const programIn = (home: string): string => join(home, 'bin', 'schemathesis');

/** A virtual environment cannot be moved, but its interpreter can start the module. */
const argumentsFor = (home: string): [string, string[]] => [join(home, 'bin', 'python'), [programIn(home)]];

const works = (home: string): Promise<boolean> =>
  run(...withVersion(home), { timeout: INSTALL_MS }).then(
    ({ stdout }) => stdout.includes(VERSION),
    () => false,
  );

function withVersion(home: string): [string, string[]] {
  const [python, args] = argumentsFor(home);
  return [python, [...args, '--version']];
}

/** Returns the command of Schemathesis, or the reason why there is none. */
export async function obtainSchemathesis(
  cache = dataFolder(),
): Promise<{ readonly command: readonly [string, string[]] } | { readonly missing: string }> {
  const home = join(cache, `schemathesis-${VERSION}`);
  if (await works(home)) return { command: argumentsFor(home) };
  const made = await mkdtemp(join(cache, 'schemathesis-'));
  try {
    await run('python3', ['-m', 'venv', made], { timeout: INSTALL_MS });
    const install = ['-m', 'pip', 'install', '--quiet', '--retries=1', `schemathesis==${VERSION}`];
    await run(join(made, 'bin', 'python'), install, { timeout: INSTALL_MS });
    // Another process may have been faster. Its environment is as good.
    await rename(made, home).catch(() => {});
    return (await works(home))
      ? { command: argumentsFor(home) }
      : { missing: 'the installed Schemathesis does not run' };
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return {
      missing: `Schemathesis could not be installed from PyPI: ${(stderr || message).trim().split('\n').at(-1)}`,
    };
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}
