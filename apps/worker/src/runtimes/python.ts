// Contract 8: runtimes of Python apps. Their replicas run harness/python.
import { fileURLToPath } from 'node:url';
import { cleanEnv, DEFAULT_PATH } from './clean-env.ts';
import type { FreedSlots } from './freed-slots.ts';
import { FunctionReplica } from './function-replica.ts';
import { keeperInterpreter, pythonInterpreter } from './interpreter.ts';
import { keptBy } from './keeper.ts';
import { Pool, type PoolOptions, type ProcessCounts } from './pool.ts';
import type { Runtime } from './runtime.ts';

/** The path is valid from `src/runtimes` and from `dist/runtimes`. */
const HARNESS = fileURLToPath(new URL('../../harness/python', import.meta.url));

/** The default of `teardownMs`. */
const TEARDOWN_MS = 30_000;

/** Options that all apps of a worker share. */
export interface PythonOptions {
  readonly maxItemBytes: number;
  readonly maxLogBytes: number;
  /** The time limit in milliseconds of a drained process from the end of its last run to its exit. */
  readonly teardownMs?: number;
  readonly logger: PoolOptions['logger'];
  /** Where free slots are reported. */
  readonly slots: FreedSlots;
  /** Returns the metrics of an app's processes. */
  readonly countsOf: (project: string, app: string) => ProcessCounts;
  /** The worker's environment. Apps see only an allow-list of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** An app and its folder. */
interface Place {
  readonly project: string;
  readonly app: string;
  /** Absolute path. */
  readonly folder: string;
}

/** The manifest fields that a Python runtime needs. Times in milliseconds. */
interface Deployment {
  readonly entrypoint: string;
  readonly interpreter: string | undefined;
  readonly replicas: number;
  readonly replicaConcurrency: number;
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly cancelGraceMs: number;
  /** Memory limit of all processes of a replica together. */
  readonly memoryBytes: number | undefined;
  readonly maxOutputBytes: number;
  readonly debug: boolean;
  readonly env: Readonly<Record<string, string>>;
}

/** Creates the runtime of one version of an app without starting it. */
export function pythonRuntimes({
  maxItemBytes,
  maxLogBytes,
  teardownMs = TEARDOWN_MS,
  logger,
  slots,
  countsOf,
  environment,
}: PythonOptions) {
  return ({ project, app, folder }: Place, version: string, deployment: Deployment): Runtime => {
    const env = cleanEnv(environment, { project, app }, deployment.env);
    const { startupTimeoutMs, timeoutMs, cancelGraceMs, replicas, debug, maxOutputBytes } = deployment;
    const init = {
      app: folder,
      entry: deployment.entrypoint,
      concurrency: deployment.replicaConcurrency,
      maxItemBytes,
      maxOutputBytes,
      maxLogBytes,
      debug,
    };
    const options = { init, env, startupTimeoutMs, timeoutMs, cancelGraceMs, teardownMs };
    return new Pool({
      replicas,
      timeoutMs,
      logger,
      counts: countsOf(project, app),
      freed: () => slots.publish(project),
      names: { project, app, version },
      prepare: async () => {
        const python = await pythonInterpreter(folder, deployment.interpreter, env.PATH ?? '');
        const keeper = await keeperInterpreter(environment.PATH ?? DEFAULT_PATH, python);
        const command = keptBy(keeper, deployment.memoryBytes, {
          file: python,
          args: ['-X', 'faulthandler', '-u', HARNESS],
        });
        return (listener) => new FunctionReplica(command, options, listener);
      },
    });
  };
}
