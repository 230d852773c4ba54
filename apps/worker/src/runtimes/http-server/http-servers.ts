// runtimes: apps that are web servers of their own, started here or running elsewhere.
import type { CustomServer } from '../../deployments/custom-server.ts';
import { cleanEnv, DEFAULT_PATH } from '../clean-env.ts';
import { keeperInterpreter } from '../interpreter.ts';
import { Pool, type PoolOptions, type ProcessCounts, type StartReplica } from '../pool.ts';
import type { Runtime } from '../runtime.ts';
import { localAddress, remoteAddress } from './address.ts';
import { whereOnLoopback } from './probe.ts';
import { checkPort, freePort, serverCommand, serverEnv } from './server-program.ts';
import { type ServerOptions, ServerReplica } from './server-replica.ts';
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
}

/** Where an app is. */
interface Place {
  readonly project: string;
  readonly app: string;
  /** Absolute path. */
  readonly folder: string;
}

/** What of an app's manifest matters here. Times in milliseconds. */
interface Deployment {
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
export function httpServers({ maxItemBytes, logger, countsOf, environment, watch = WATCH_TIMES }: HttpServerOptions) {
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
    const { url, port, entrypoint = [] } = server;
    const keeper = () => keeperInterpreter(environment.PATH ?? DEFAULT_PATH);
    const home = { entrypoint, port, folder, env, memoryBytes, keeper };
    return new Pool({
      replicas,
      timeoutMs,
      logger,
      counts: countsOf(project, app),
      names: { project, app, version },
      prepare: () => (url === undefined ? started(home, options) : elsewhere(url, options)),
    });
  };
}

/** What a server is started from. */
interface Home {
  readonly entrypoint: readonly string[];
  readonly port: number | undefined;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly memoryBytes: number | undefined;
  /** Of an interpreter for its keeper. */
  readonly keeper: () => Promise<string>;
}

async function started(
  { entrypoint, port: fixed, folder, env, memoryBytes, keeper }: Home,
  options: ServerOptions,
): Promise<StartReplica> {
  if (fixed !== undefined) await checkPort(fixed);
  const port = fixed ?? (await freePort());
  const own = serverEnv(env, folder, port);
  const place = { folder, path: own.PATH ?? '', port, memoryBytes };
  const command = await serverCommand(entrypoint, await keeper(), place);
  const find = async () => {
    const host = await whereOnLoopback(port, options.watch.answerMs);
    return host === undefined ? undefined : localAddress(host, port);
  };
  return (listener) => new ServerReplica({ command, folder, env: own }, find, options, listener);
}

async function elsewhere(url: string, options: ServerOptions): Promise<StartReplica> {
  return (listener) => new ServerReplica(undefined, async () => remoteAddress(url), options, listener);
}
