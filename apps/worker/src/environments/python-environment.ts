// Contract 7, "Dependencies": a virtual environment of Python packages, built by uv if uv is on PATH, else by venv and pip.
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import type { ReadManifest } from '../deployments/manifest.ts';
import { findProgram } from '../runtimes/http-server/server-program.ts';
import { keeperInterpreter } from '../runtimes/interpreter.ts';
import { BuildFailed } from './build-failed.ts';
import type { BuildStep } from './build-step.ts';
import { uvSettings } from './build-variables.ts';
import { type BuildPlace, type PackageList, runs } from './package-list.ts';
import { pipConf } from './pip-conf.ts';
import { type PythonDependencies, pythonDependencies } from './python-dependencies.ts';

const PROBE = `import importlib.metadata, sys, sysconfig
print(next((d.version for d in importlib.metadata.distributions(name="pip")), ""))
print(sys.version, sysconfig.get_platform())`;
const PROBE_MS = 20_000;
/** From this version on, pip installs into another environment (`--python`). */
const PIP_FOR_OTHERS = [22, 3] as const;

const VENV = '.venv';

/**
 * Returns the Python packages of a version, if it names any and runs Python.
 *
 * @param path the worker's PATH
 * @throws BuildFailed
 */
export async function pythonPackages(
  folder: string,
  { manifest, build }: ReadManifest,
  path: string,
): Promise<PackageList | undefined> {
  const list = runs('python', manifest) ? await pythonDependencies(folder, build) : undefined;
  if (list === undefined) return undefined;
  const base = await keeperInterpreter(path)
    .then((python) => baseInterpreter(python, path))
    .catch((error: Error) => {
      throw new BuildFailed(error.message);
    });
  const { lines, constraints, isLocal, source } = list;
  return {
    place: VENV,
    described: `${lines.length === 1 ? '1 line' : `${lines.length} lines`} of ${source}`,
    identity: { interpreter: base.identity, lines, constraints },
    isLocal,
    steps: (place) => pythonSteps(base, list, place),
  };
}

/** The interpreter from which environments are made. */
interface BaseInterpreter {
  readonly python: string;
  /** Version and platform, as text. */
  readonly identity: string;
  /** Whether this pip can install into another environment. Then a new environment needs no own pip, and its build takes seconds less. */
  readonly hasPip: boolean;
}

/** @throws Error of the system if the interpreter cannot be run */
async function baseInterpreter(python: string, path: string): Promise<BaseInterpreter> {
  const { stdout } = await promisify(execFile)(python, ['-I', '-c', PROBE], { env: { PATH: path }, timeout: PROBE_MS });
  const [pip = '', ...identity] = stdout.split('\n');
  const [major = 0, minor = 0] = pip.split('.').map(Number);
  const hasPip = major > PIP_FOR_OTHERS[0] || (major === PIP_FOR_OTHERS[0] && minor >= PIP_FOR_OTHERS[1]);
  return { python, identity: `${python}\n${identity.join('\n')}`, hasPip };
}

/** Writes the lists and returns the steps of the build. */
async function pythonSteps(
  { python, hasPip }: BaseInterpreter,
  list: PythonDependencies,
  { folder, from, env }: BuildPlace,
): Promise<BuildStep[]> {
  const venv = join(from, VENV);
  const requirements = join(folder, 'requirements.txt');
  const constraints = join(folder, 'constraints.txt');
  await writeFile(requirements, textOf(list.lines));
  await writeFile(constraints, textOf(list.constraints));
  const files = ['-r', requirements, ...(list.constraints.length > 0 ? ['-c', constraints] : [])];
  const interpreter = join(venv, 'bin', 'python');
  const step = (name: string, file: string, args: string[], more: Record<string, string> = {}): BuildStep => ({
    name,
    command: { file, args },
    folder: from,
    env: { ...env, ...more },
  });
  const uv = await onPath('uv', env.PATH ?? '');
  if (uv === undefined && hasPip)
    return [
      step('venv', python, ['-I', '-m', 'venv', '--without-pip', venv]),
      step('pip', python, ['-I', '-m', 'pip', '--python', interpreter, 'install', ...files]),
    ];
  if (uv === undefined)
    return [
      step('venv', python, ['-I', '-m', 'venv', venv]),
      step('pip', interpreter, ['-I', '-m', 'pip', 'install', ...files]),
    ];
  const settings = uvSettings(await pipConf(python, env), env);
  return [
    step('uv venv', uv, ['venv', '--quiet', '--no-project', '--python', python, venv]),
    step('uv pip', uv, ['pip', 'install', '--compile-bytecode', '--python', interpreter, ...files], settings),
  ];
}

const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

/** Returns the absolute path of a program on PATH. Relative folders of PATH do not count, because the working directory varies. */
export async function onPath(program: string, path: string): Promise<string | undefined> {
  const folders = path.split(delimiter).filter(isAbsolute);
  return findProgram(program, '/', folders.join(delimiter)).catch(() => undefined);
}
