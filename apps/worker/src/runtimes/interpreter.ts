// Contract 7: finds the real Python interpreter of an app, once. `python3` on the PATH may be a shell script (pyenv), which costs 50 ms and
// hides the process from signals.
import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { spawnFailure } from './spawn-failure.ts';

const PROBE = 'import sys; print("%d.%d" % sys.version_info[:2]); print(sys.executable)';
const PROBE_MS = 20_000;
const LOWEST_MINOR = 9;

const found = new Map<string, Promise<string>>();

/**
 * Returns the interpreter's absolute path: the configured path (relative to the app's folder, or absolute), else the app's `.venv`, else
 * `python3` on `path`.
 *
 * @throws Error with a text for the app's author: the interpreter is missing, or older than Python 3.9
 */
export async function pythonInterpreter(folder: string, configured: string | undefined, path: string): Promise<string> {
  const candidate =
    configured === undefined
      ? await venvOrPath(folder)
      : isAbsolute(configured)
        ? configured
        : join(folder, configured);
  return resolved(candidate, path);
}

/**
 * Returns the interpreter for keepers: the worker's own `python3`, so that neither the app's folder nor its settings affect the keeper.
 * Falls back to the app's interpreter.
 *
 * @param path the worker's PATH
 * @param ofApp the app's interpreter, if it has one
 * @throws Error if there is no interpreter
 */
export const keeperInterpreter = (path: string, ofApp?: string): Promise<string> =>
  resolved('python3', path).catch((error: unknown) => {
    if (ofApp === undefined) throw error;
    return ofApp;
  });

async function resolved(candidate: string, path: string): Promise<string> {
  const key = `${path}\n${candidate}`;
  const known = found.get(key) ?? probe(candidate, path);
  found.set(key, known);
  try {
    return await known;
  } catch (error) {
    found.delete(key); // the interpreter may be installed before the next start
    throw error;
  }
}

async function venvOrPath(folder: string): Promise<string> {
  const venv = join(folder, '.venv', 'bin', 'python');
  try {
    await access(venv);
    return venv;
  } catch {
    return 'python3';
  }
}

function probe(candidate: string, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const env = { PATH: path };
  const missing = (error: Error | null): void =>
    reject(
      new Error(`no Python interpreter at ${candidate}: ${error ? spawnFailure(error, env) : 'it prints nothing'}`),
    );
  const answered = (error: Error | null, stdout: string): void => {
    const [version = '', executable = ''] = stdout.trim().split('\n');
    const [major, minor] = version.split('.').map(Number);
    if (error || !isAbsolute(executable)) missing(error);
    else if (major !== 3 || minor === undefined || minor < LOWEST_MINOR)
      reject(new Error(`${executable} is Python ${version}; 3.9 or newer is needed`));
    else resolve(executable);
  };
  try {
    execFile(candidate, ['-I', '-c', PROBE], { env, timeout: PROBE_MS }, answered);
  } catch (error) {
    missing(error as Error); // `execFile` throws E2BIG
  }
  return promise;
}
