// Finds FastAPI and uvicorn for tests of custom runtimes: on this machine, or in Debian's packages.

import { execFile } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder, unpackPackages } from '@inference-proxy/supervisor';

const run = promisify(execFile);
const NEEDED = 'import fastapi, uvicorn; import sys; print(sys.executable)';
const PACKAGES = ['python3-fastapi', 'uvicorn'];
const INSIDE = join('usr', 'lib', 'python3', 'dist-packages');
const HOME = 'fastapi';

/** An interpreter that has both packages. */
export interface FastApi {
  /** Absolute path. */
  readonly python: string;
  /** Variables that the server needs in its environment. */
  readonly env: Readonly<Record<string, string>>;
}

async function inspect(python: string, packages?: string): Promise<FastApi | undefined> {
  const env: Record<string, string> = packages === undefined ? {} : { PYTHONPATH: packages };
  try {
    const { stdout } = await run(python, ['-c', NEEDED], { env: { PATH: process.env.PATH, ...env }, timeout: 30_000 });
    return { python: stdout.trim(), env };
  } catch {
    return undefined;
  }
}

/** Debian's packages work with Debian's interpreter only. */
const DEBIAN = '/usr/bin/python3';

/** @throws Error with the commands to type if FastAPI can be neither found nor fetched */
export async function obtainFastApi(
  say: (text: string) => void = () => {},
  cache: string = dataFolder(),
): Promise<FastApi> {
  const home = join(cache, HOME);
  const present = (await inspect(DEBIAN)) ?? (await inspect('python3')) ?? (await inspect(DEBIAN, join(home, INSIDE)));
  if (present) return present;
  say('No FastAPI on this machine: fetching it with apt-get into .data (nothing is installed)');
  const sorry =
    'Install FastAPI and uvicorn for the tests: apt install python3-fastapi uvicorn, or pip install fastapi uvicorn';
  await mkdir(cache, { recursive: true });
  await unpackPackages(cache, PACKAGES, PACKAGES, async (tree) =>
    (await inspect(DEBIAN, join(tree, INSIDE))) ? home : undefined,
  ).catch((error: Error & { stderr?: string }) => {
    const reason = (error.stderr ?? error.message).trim().split('\n').at(-1);
    throw new Error(`${sorry} (apt-get: ${reason})`);
  });
  const found = (await readdir(home).catch(() => [])).length > 0 && (await inspect(DEBIAN, join(home, INSIDE)));
  if (!found) throw new Error(sorry);
  return found;
}
