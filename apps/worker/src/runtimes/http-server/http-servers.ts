// Contract 1, "Custom runtimes": runtimes of web servers, which the worker starts or which run elsewhere.
import type { AppFolder } from '../../deployments/app-folders.ts';
import type { CustomServer } from '../../deployments/custom-server.ts';
import { noSecrets, type SecretsOf } from '../../secrets/opened-secrets.ts';
import { cleanEnv, DEFAULT_PATH } from '../clean-env.ts';
import type { FreedSlots } from '../freed-slots.ts';
import { keeperInterpreter } from '../interpreter.ts';
import { Pool, type PoolOptions, type ProcessCounts, type StartReplica } from '../pool.ts';
import { PrintedLines } from '../printed-lines.ts';
import type { Runtime } from '../runtime.ts';
import { remoteAddress } from './address.ts';
import { Ports } from './ports.ts';
import { findServer } from './probe.ts';
import { ServerPort } from './server-port.ts';
import { serverCommand, serverEnv } from './server-program.ts';
import { type FindServer, type ServerOptions, type ServerProgram, ServerReplica } from './server-replica.ts';
import { WATCH_TIMES, type WatchTimes } from './server-watch.ts';

/** Options that all apps of a worker share. */
export interface HttpServerOptions {
  readonly maxItemBytes: number;
  readonly logger: PoolOptions['logger'];
  /** Where free slots are reported. */
  readonly slots: FreedSlots;
  /** Returns the metrics of an app's processes. */
  readonly countsOf: (project: string, app: string) => ProcessCounts;
  /** The worker's environment. Apps see only an allow-list of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Returns the secrets of an app for the start of a process. Absent: no app has secrets. */
  readonly secretsOf?: SecretsOf;
  /** Intervals of the checks. */
  readonly watch?: WatchTimes;
  /** Called when a server starts on another port than its manifest names. The text is the line in the app's log. */
  readonly portReplaced?: (text: string) => void;
}

/** The manifest fields that a web server needs. Times in milliseconds. */
export interface ServerTerms {
  readonly server: CustomServer;
  readonly replicas: number;
  readonly replicaConcurrency: number;
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** Memory limit of all processes of a replica together. */
  readonly memoryBytes: number | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** Creates the runtime of one version of an app without starting it. */
export function httpServers(shared: HttpServerOptions) {
  const {
    maxItemBytes,
    logger,
    slots,
    countsOf,
    environment,
    secretsOf = noSecrets,
    watch = WATCH_TIMES,
    portReplaced = () => undefined,
  } = shared;
  const ports = new Ports();
  return ({ project, app, folder }: AppFolder, version: string, deployment: ServerTerms): Runtime => {
    const { server, startupTimeoutMs, timeoutMs, maxOutputBytes, memoryBytes, replicas } = deployment;
    const options: ServerOptions = {
      concurrency: deployment.replicaConcurrency,
      ...{ maxItemBytes, maxOutputBytes, startupTimeoutMs, timeoutMs, watch },
      healthcheck: server.healthcheck,
      readycheck: server.readycheck,
      killOnCancel: server.killOnCancel,
    };
    const env = cleanEnv(environment, { project, app }, deployment.env);
    const { url, entrypoint = [] } = server;
    const port = new ServerPort(ports, `${project}/${app}`, server.port, entrypoint);
    const keeper = () => keeperInterpreter(environment.PATH ?? DEFAULT_PATH);
    const home = { port, folder, env, memoryBytes, keeper, portReplaced };
    const pool = new Pool({
      replicas,
      timeoutMs,
      logger,
      counts: countsOf(project, app),
      freed: () => slots.publish(project),
      names: { project, app, version },
      prepare: async () =>
        url === undefined
          ? started({ ...home, env: { ...env, ...(await secretsOf(project, app)) } }, options)
          : elsewhere(url, options),
    });
    pool.onChange(() => {
      if (pool.state === 'closed') port.close();
    });
    return pool;
  };
}

/** Everything that a start of the server needs. */
interface Home {
  readonly port: ServerPort;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly memoryBytes: number | undefined;
  /** Returns the interpreter for the server's keeper. */
  readonly keeper: () => Promise<string>;
  readonly portReplaced: (text: string) => void;
}

async function started(home: Home, options: ServerOptions): Promise<StartReplica> {
  const { port, entrypoint, replaced, release } = await home.port.take();
  const program = await programOf(home, port, entrypoint).catch((error: unknown) => {
    release();
    throw error;
  });
  const find: FindServer = async (keeper) =>
    keeper === undefined ? 'it was not started' : findServer(keeper, port, options.watch.answerMs);
  return (listener) => {
    if (replaced !== undefined) {
      listener.log(PrintedLines.now('stderr', [replaced]), undefined);
      home.portReplaced(replaced);
    }
    const exited: typeof listener.exited = (how) => {
      release();
      listener.exited(how);
    };
    return new ServerReplica(program, find, options, { ...listener, exited });
  };
}

async function programOf(
  { folder, env, memoryBytes, keeper }: Home,
  port: number,
  entrypoint: readonly string[],
): Promise<ServerProgram> {
  const own = serverEnv(env, folder, port);
  const place = { folder, path: own.PATH ?? '', port, memoryBytes };
  return { command: await serverCommand(entrypoint, await keeper(), place), folder, env: own };
}

async function elsewhere(url: string, options: ServerOptions): Promise<StartReplica> {
  return (listener) => new ServerReplica(undefined, async () => remoteAddress(url), options, listener);
}
