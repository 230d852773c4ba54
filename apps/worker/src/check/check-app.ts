// Contract 7: `npm run check` reports the problems of an app's folder, and the functions or the server that it would serve, before a deployment.
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { type FunctionSpec, isAppName, isProjectName } from '@inference-proxy/contracts';
import type { BuildKeys } from '../deployments/build-keys.ts';
import type { CustomServer } from '../deployments/custom-server.ts';
import { type Manifest, ManifestError, readManifest } from '../deployments/manifest.ts';
import { refusedCommands } from '../environments/build-commands.ts';
import { BuildFailed } from '../environments/build-failed.ts';
import { nodeDependencies } from '../environments/node-dependencies.ts';
import { runs } from '../environments/package-list.ts';
import { pythonDependencies } from '../environments/python-dependencies.ts';
import { unsupported } from '../environments/unsupported.ts';
import { brings } from '../environments/version-folder.ts';
import { cleanEnv } from '../runtimes/clean-env.ts';
import { FreedSlots } from '../runtimes/freed-slots.ts';
import { pythonInterpreter } from '../runtimes/interpreter.ts';
import type { Runtime } from '../runtimes/runtime.ts';
import { runtimes } from '../runtimes/runtimes.ts';
import { spawnFailure } from '../runtimes/spawn-failure.ts';
import { type MissingModule, missingModules } from './missing-modules.ts';
import { portInUse } from './port-in-use.ts';
import { pythonOfServer } from './server-interpreter.ts';

/** The time for `teardown()`. */
const END_MS = 10_000;
/** Begins a line in which the harness names a part of the app that is not served (`app.py`). */
const NOTE = 'inference-proxy: ';
const DEPLOYED_PACKAGES = 'a deployment installs the packages of';

export interface CheckOptions {
  readonly maxItemBytes: number;
  readonly maxOutputBytes: number;
  readonly maxLogBytes: number;
  /** Whether the workers run the commands of manifests (`ALLOW_BUILD_COMMANDS`). */
  readonly allowCommands: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called for each line that the app prints during the start. */
  readonly printed: (line: string) => void;
}

/** The result of a check. An app without problems would be served. */
export interface Checked {
  readonly problems: readonly string[];
  /** Keys without effect and other hints, which are not problems. */
  readonly notes: readonly string[];
  readonly functions: readonly FunctionSpec[];
  /** The command or the URL of the server. Set if the app is a web server. */
  readonly server?: string;
  /** Milliseconds from the start of the process until it is ready: import and `setup()`. */
  readonly startMs?: number;
}

export async function checkApp(folder: string, options: CheckOptions): Promise<Checked> {
  const problems = misnamed(folder);
  const notes: string[] = [];
  const found = await stat(folder).catch(() => undefined);
  if (!found?.isDirectory()) return { problems: [`${folder} is not a folder`], notes, functions: [] };
  let manifest: Manifest;
  let build: BuildKeys;
  try {
    const read = await readManifest(folder, options.maxOutputBytes);
    manifest = read.manifest;
    problems.push(...read.unknown.map((key) => `${key} is an unknown key`));
    build = read.build;
    const refused = options.allowCommands ? undefined : refusedCommands(build);
    if (refused !== undefined) problems.push(refused);
    notes.push(...read.unused.map((key) => `${key} has no effect here`), ...unsupported(build));
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    return { problems: [...problems, error.message], notes, functions: [] };
  }
  const missing = await missingIn(folder, manifest, options.environment).catch((error: Error) => error);
  if ('message' in missing)
    return { problems: [...problems, spawnFailure(missing, manifest.env)], notes, functions: [] };
  const needed = missing.filter(({ imported }) => imported);
  const list = await listOf(folder, manifest, build).catch((error: Error) => error);
  if (list instanceof BuildFailed) return { problems: [...problems, list.message], notes, functions: [] };
  if (needed.length > 0 && typeof list === 'string') {
    const install = `install them into .venv to check the start of the app`;
    return { problems, notes: [...notes, `${DEPLOYED_PACKAGES} ${list}: ${install}`], functions: [] };
  }
  problems.push(...needed.map(lacking));
  notes.push(...missing.filter(({ imported }) => !imported).map((one) => `${lacking(one)}; the app starts without it`));
  const { server } = manifest;
  const held = server && (await portInUse(server, folder));
  if (server) notes.push(...ofPorts(server));
  if (held !== undefined) return { problems, notes: [...notes, held], functions: [] };
  const started = await start(folder, manifest, options, (text) => notes.push(text));
  // A missing module is already reported, and is the reason why the app does not start.
  if (started.problem !== undefined && needed.length === 0) {
    if (await lacksPackages(folder, manifest, started.problem))
      return { problems, notes: [...notes, `${DEPLOYED_PACKAGES} package.json: ${started.problem}`], functions: [] };
    problems.push(started.problem);
  }
  if (!server && started.problem === undefined && started.functions.length === 0)
    problems.push('it has no public function');
  return {
    problems,
    notes,
    functions: started.functions,
    ...(server && { server: server.url ?? (server.entrypoint ?? []).join(' ') }),
    ...(started.problem === undefined && { startMs: started.ms }),
  };
}

/** Returns the source of the packages that a deployment would install, if it would install packages of Python. */
async function listOf(folder: string, manifest: Manifest, build: BuildKeys): Promise<string | undefined> {
  if (manifest.interpreter !== undefined || !runs('python', manifest)) return undefined;
  const list = await pythonDependencies(folder, build);
  return (await brings(folder, '.venv')) ? undefined : list?.source;
}

/** Returns whether an app in JavaScript does not start for want of packages that a deployment would install. */
async function lacksPackages(folder: string, manifest: Manifest, problem: string): Promise<boolean> {
  if (!runs('node', manifest) || !/Cannot find (package|module)/.test(problem)) return false;
  return (await nodeDependencies(folder)) !== undefined && !(await brings(folder, 'node_modules'));
}

const lacking = ({ module, where }: MissingModule): string =>
  `${where} imports ${module}, which the interpreter does not have`;

/** Returns notes about the costs of a fixed port. */
function ofPorts({ port, entrypoint }: CustomServer): string[] {
  if (port === undefined) return [];
  const instead = entrypoint?.some((word) => word.includes(String(port)))
    ? `{port} in its place in entrypoint`
    : 'the environment variable PORT';
  return [
    `a server with the fixed port ${port} has one replica on each machine, and calls wait during a change of versions: without port, ${instead} has a free port`,
  ];
}

/** The last two parts of the path are the project and the app in a call's path. */
function misnamed(folder: string): string[] {
  const [project, app] = [basename(dirname(folder)), basename(folder)];
  return [
    ...(isProjectName(project) ? [] : [`the project's folder, ${project}, has a name that no call could reach`]),
    ...(isAppName(app) ? [] : [`the app's folder, ${app}, has a name that no call could reach`]),
  ];
}

async function missingIn(
  folder: string,
  { language, entrypoint, interpreter, env, server }: Manifest,
  environment: CheckOptions['environment'],
): Promise<readonly MissingModule[]> {
  const clean = cleanEnv(environment, { project: basename(dirname(folder)), app: basename(folder) }, env);
  const path = clean.PATH ?? '';
  if (server?.url !== undefined) return [];
  // The engine itself names a package that a module in JavaScript imports and the folder does not have.
  if (server === undefined && language === 'node') return [];
  const start = server ? (server.entrypoint ?? []) : [entrypoint];
  const python = server
    ? await pythonOfServer(start, folder, path)
    : await pythonInterpreter(folder, interpreter, path);
  return python === undefined ? [] : missingModules(python, folder, start, clean);
}

interface Started {
  readonly ms: number;
  readonly functions: readonly FunctionSpec[];
  readonly problem?: string;
}

/** Starts a process of the app as a worker would, and ends it. */
async function start(
  folder: string,
  manifest: Manifest,
  options: CheckOptions,
  note: (text: string) => void,
): Promise<Started> {
  const { maxItemBytes, maxLogBytes, environment, printed } = options;
  const line = (fields: object, text: string): void => {
    if (!('stream' in fields)) return;
    if (text.startsWith(NOTE)) note(text.slice(NOTE.length));
    else printed(text);
  };
  const make = runtimes({
    maxItemBytes,
    maxLogBytes,
    environment,
    portReplaced: note,
    logger: { info: line, warn: line, error: line },
    slots: new FreedSlots(),
    countsOf: () => ({ moved() {}, started() {}, crashed() {} }),
  });
  const place = { project: basename(dirname(folder)), app: basename(folder), folder };
  const runtime = make(place, 'check', { ...manifest, replicas: 1 });
  const startedAt = performance.now();
  await settled(runtime);
  const ms = performance.now() - startedAt;
  const { functions, error } = runtime;
  // An orderly end shows everything that the app prints. `END_MS` bounds the wait.
  const givingUp = setTimeout(() => void runtime.close(), END_MS);
  await runtime.drain();
  clearTimeout(givingUp);
  if (error === undefined) return { ms, functions };
  const { type, message } = error;
  return { ms, functions: [], problem: `it does not start: ${type === undefined ? '' : `${type}: `}${message}` };
}

/** Resolves when the runtime serves or has failed to start. */
function settled(runtime: Runtime): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (runtime.state === 'ready' || runtime.state === 'broken') resolve();
    };
    runtime.onChange(look);
    runtime.start();
    look();
  });
}
