// Contract 8: runtimes of functions, in any language. A language finds the program that runs its harness.
import type { AppFolder } from '../deployments/app-folders.ts';
import { noSecrets, type SecretsOf } from '../secrets/opened-secrets.ts';
import { cleanEnv, DEFAULT_PATH } from './clean-env.ts';
import type { FreedSlots } from './freed-slots.ts';
import { FunctionReplica } from './function-replica.ts';
import { keeperInterpreter } from './interpreter.ts';
import { type Command, keptBy } from './keeper.ts';
import { Pool, type PoolOptions, type ProcessCounts } from './pool.ts';
import type { Runtime } from './runtime.ts';

/** The default of `teardownMs`. */
const TEARDOWN_MS = 30_000;

/** Options that all apps of a worker share. */
export interface FunctionOptions {
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
  /** Returns the secrets of an app for the start of a process. Absent: no app has secrets. */
  readonly secretsOf?: SecretsOf;
}

/** The manifest fields that a runtime of functions needs. Times in milliseconds. */
export interface FunctionTerms {
  readonly entrypoint: string;
  /** The interpreter or engine that the manifest names. */
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
  /** Whether arguments are checked and converted as their annotations require. Default: true. */
  readonly validate?: boolean;
  readonly env: Readonly<Record<string, string>>;
}

/** The program of a replica: an engine that runs a harness. */
export interface Program extends Command {
  /** The interpreter that runs the keeper if the worker has no `python3`. */
  readonly python?: string;
  /** Compiled files and types of the app as JSON, which the harness receives with `init`. */
  readonly sources?: Buffer | undefined;
}

/** Finds the program of a replica. Rejects with a text for the app's author if there is no program. */
export type FindProgram = (
  folder: string,
  deployment: FunctionTerms,
  env: Readonly<Record<string, string>>,
  version: string,
) => Promise<Program>;

/** Returns a function that creates the runtime of one version of an app without starting it. */
export function functionRuntimes(
  {
    maxItemBytes,
    maxLogBytes,
    teardownMs = TEARDOWN_MS,
    logger,
    slots,
    countsOf,
    environment,
    secretsOf = noSecrets,
  }: FunctionOptions,
  findProgram: FindProgram,
) {
  return ({ project, app, folder }: AppFolder, version: string, deployment: FunctionTerms): Runtime => {
    const env = cleanEnv(environment, { project, app }, deployment.env);
    const { startupTimeoutMs, timeoutMs, cancelGraceMs, replicas, debug, validate, maxOutputBytes } = deployment;
    const init = {
      app: folder,
      entry: deployment.entrypoint,
      concurrency: deployment.replicaConcurrency,
      maxItemBytes,
      maxOutputBytes,
      maxLogBytes,
      debug,
      ...(validate === false && { validate }),
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
        const program = await findProgram(folder, deployment, env, version);
        const keeper = await keeperInterpreter(environment.PATH ?? DEFAULT_PATH, program.python);
        const command = keptBy(keeper, deployment.memoryBytes, program);
        const { sources } = program;
        const secrets = await secretsOf(project, app);
        const ownOptions = {
          ...options,
          env: { ...env, ...secrets },
          ...(sources !== undefined && { init: { ...init, sources } }),
        };
        return (listener) => new FunctionReplica(command, ownOptions, listener);
      },
    });
  };
}
