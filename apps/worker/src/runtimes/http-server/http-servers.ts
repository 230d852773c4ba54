// runtimes: apps that are web servers of their own, started here or running elsewhere.
import type { CustomServer } from '../../deployments/custom-server.ts';
import { cleanEnv, DEFAULT_PATH } from '../clean-env.ts';
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

/** What all apps of a worker share. */
export interface HttpServerOptions {
  readonly maxItemBytes: number;
  readonly logger: PoolOptions['logger'];
  /** What the processes of an app are counted by. */
  readonly countsOf: (project: string, app: string) => ProcessCounts;
  /** The worker's environment, of which apps see an allow-list only. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How often servers are looked at. */
  readonly watch?: WatchTimes;
  /** Called when a server starts on another port than its manifest names, with the text that the app's log has. */
  readonly portReplaced?: (text: string) => void;
}

/** Where an app is. */
export interface Place {
  readonly project: string;
  readonly app: string;
  /** Absolute path. */
  readonly folder: string;
}

/** What of an app's manifest matters here. Times in milliseconds. */
export interface Deployment {
  readonly server: CustomServer;
  readonly replicas: number;
  readonly replicaConcurrency: number;
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** What the processes of a replica may hold together. */
  readonly memoryBytes: number | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** Makes the runtime of one version of an app; not yet started. */
export function httpServers(shared: HttpServerOptions) {
  const { maxItemBytes, logger, countsOf, environment, watch = WATCH_TIMES, portReplaced = () => undefined } = shared;
  const ports = new Ports();
  return ({ project, app, folder }: Place, version: string, deployment: Deployment): Runtime => {
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
      names: { project, app, version },
      prepare: () => (url === undefined ? started(home, options) : elsewhere(url, options)),
    });
    pool.onChange(() => {
      if (pool.state === 'closed') port.close();
    });
    return pool;
  };
}

/** What a server is started from. */
interface Home {
  readonly port: ServerPort;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly memoryBytes: number | undefined;
  /** Of an interpreter for its keeper. */
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
