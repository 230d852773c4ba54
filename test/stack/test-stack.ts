// The whole stack for a test file: the built services, a Redis with an append-only file, and a copy of the apps. All are removed afterwards.
import { EventEmitter, once } from 'node:events';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '@inference-proxy/platform';
import {
  Balancer,
  balancedPart,
  developmentRedisPasswords,
  developmentSecrets,
  freePort,
  instancesOf,
  ONE_OF_EACH,
  Output,
  obtainRedis,
  type PartSpec,
  partNames,
  projectRoot,
  type RedisOptions,
  type RedisUser,
  readPids,
  redisPart,
  redisUrlOf,
  type Scale,
  type ServiceSpec,
  StackSettings,
  Supervisor,
  servicePart,
  serviceSpecs,
} from '@inference-proxy/supervisor';
import { refuseOldBundles } from './bundles.ts';
import { deniedCommands } from './redis-denials.ts';

/** The parts that a test may kill, numbered from 1 if there are several of a service. */
export type KillablePart = keyof Scale | `${keyof Scale}-${number}` | 'redis';

export interface TestStack {
  /** The port of the gateway, or of the balancer in front of all gateways, on 127.0.0.1. */
  readonly port: number;
  /** Returns the port of each gateway, if several run behind the balancer. */
  gatewayPorts(): readonly number[];
  /** Returns the pid of a part. */
  pid(part: KillablePart): number;
  readonly jwtSecret: string;
  /** The REDIS_URL of the user `admin`. */
  readonly redisUrl: string;
  /** Returns the REDIS_URL of a service or of another user. */
  redisUrlOf(user: RedisUser): string;
  /** A copy of the apps, which a test may change. */
  readonly appsDir: string;
  /** A folder, empty at the start, for files between a test and its functions. */
  readonly marksDir: string;
  /** Returns the logs of all services until now. */
  logs(): string;
  /** Ends a part, by default with SIGKILL. Resolves when the supervisor has restarted it. */
  kill(part: KillablePart, signal?: NodeJS.Signals): Promise<void>;
  /** Removes a service from the balancer, stops it in order and starts it again. Resolves when it is ready. */
  restart(part: KillablePart): Promise<void>;
  /** Suspends a part (SIGSTOP) until `resume`. Its connections stay open. */
  pause(part: KillablePart): void;
  resume(part: KillablePart): void;
  /** Stops all parts and removes their files. @throws Error if Redis has denied a command of a service */
  stop(): Promise<void>;
}

/** A killed part that is not restarted within this time is never restarted. */
const STARTS_AGAIN_MS = 120_000;

export interface TestStackOptions {
  /** A folder of apps, `<project>/<app>/`. Default: `test/apps`. */
  readonly apps?: string;
  /** Settings for all services, such as shortened times, or for each part by its name. @param redisUrl the part's REDIS_URL */
  readonly env?: Record<string, string> | ((part: string, redisUrl: string) => Record<string, string>);
  /** Default: one process of each service. */
  readonly scale?: Scale;
  /** The port of the gateway, or of the balancer in front of several. Default: a free port. */
  readonly port?: number;
  /** The port, the program and the arguments of Redis. Default: those of the stack. */
  readonly redis?: Pick<RedisOptions, 'port' | 'binary' | 'args'>;
  /** Set by a test that sends commands which Redis must deny. */
  readonly denials?: 'expected';
  /** Redis' folder. Default: a folder that is removed with the stack. */
  readonly redisDir?: string;
  /** Called with each text that the services log. */
  readonly onLog?: (text: string) => void;
}

export async function startTestStack({
  apps,
  env = {},
  scale = ONE_OF_EACH,
  port: wanted,
  redis: wantedRedis,
  redisDir,
  denials,
  onLog = () => {},
}: TestStackOptions = {}): Promise<TestStack> {
  const root = projectRoot();
  refuseOldBundles(root);
  const folder = await mkdtemp(join(tmpdir(), 'stack-'));
  const [appsDir, marksDir, dataDir] = ['apps', 'marks', 'data'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await cp(apps ?? join(root, 'test', 'apps'), appsDir, {
    recursive: true,
    filter: (path) => !path.endsWith('__pycache__'),
  });
  for (const made of [marksDir, dataDir]) await mkdir(made);
  const port = wanted ?? (await freePort());
  const settings = new StackSettings(
    readSettings(StackSettings.schema, { PORT: String(port), DATA_DIR: dataDir, DEPLOYMENTS_DIR: appsDir }),
  );
  const redis: RedisOptions & { port: number } = {
    dir: redisDir ?? join(dataDir, 'redis'),
    args: wantedRedis?.args ?? [],
    binary: wantedRedis?.binary ?? (await obtainRedis(() => {})),
    port: wantedRedis?.port ?? (await freePort()),
    tcp: wantedRedis?.port !== undefined,
    passwords: developmentRedisPasswords(dataDir),
    graceS: 0,
    removeWithUs: folder,
  };
  let logs = '';
  const sink = {
    write: (text: string) => {
      logs += text;
      onLog(text);
      return true;
    },
    once: () => {},
  };
  const output = new Output(partNames(scale), sink, false);
  const secrets = developmentSecrets(dataDir);
  const urlOf = (user: RedisUser): string => redisUrlOf(redis, user);
  const specs = serviceSpecs({ root, settings, scale, secrets, redisUrl: urlOf, receiverPort: 0, dataDir, output });
  const starts = new EventEmitter();
  const ports = new Map<string, number>();
  const withPort = (part: PartSpec): PartSpec => ({
    ...part,
    async start(signal, started) {
      const running = await part.start(signal, started);
      if (running.port !== undefined) ports.set(part.name, running.port);
      starts.emit(part.name);
      return running;
    },
  });
  const balancer = scale.gateway > 1 ? new Balancer() : undefined;
  const part = (spec: ServiceSpec): PartSpec => {
    const own = typeof env === 'function' ? env(spec.name, String(spec.env.REDIS_URL)) : env;
    const tested = { ...spec, env: { ...spec.env, NODE_ENV: 'test', ...own } };
    const balanced = balancer && spec.service === 'gateway';
    return withPort(balanced ? balancedPart(tested, output, balancer) : servicePart(tested, output));
  };
  const services = Map.groupBy(
    specs.filter(({ name }) => name !== 'receiver'),
    ({ service }) => service,
  );
  const supervisor = new Supervisor({
    dataDir,
    output,
    parts: [...services.values()].map((group) => group.map(part)),
    base: withPort(redisPart(redis)),
  });
  const stop = async (): Promise<void> => {
    balancer?.refuse();
    const denied = await deniedCommands(urlOf('admin'));
    await supervisor.stop();
    balancer?.close();
    await rm(folder, { recursive: true, force: true });
    if (denied.length > 0 && denials !== 'expected')
      throw new Error(
        `Redis has denied commands of the services. Correct the commands or deploy/redis/users.acl:\n${denied.join('\n')}`,
      );
  };
  try {
    await balancer?.listen('127.0.0.1', port);
    await supervisor.start();
  } catch (error) {
    await stop();
    throw new Error(`${(error as Error).message}\n${logs}`);
  }
  const pid = (name: KillablePart): number => readPids(dataDir)[name] as number;
  const signal = (name: KillablePart, sent: NodeJS.Signals): boolean => process.kill(pid(name), sent);
  return {
    port,
    gatewayPorts: () => instancesOf('gateway', scale.gateway).map((name) => ports.get(name) as number),
    pid,
    jwtSecret: secrets.jwtSecret,
    redisUrl: urlOf('admin'),
    redisUrlOf: urlOf,
    appsDir,
    marksDir,
    logs: () => logs,
    async kill(part, name = 'SIGKILL') {
      const again = once(starts, part, { signal: AbortSignal.timeout(STARTS_AGAIN_MS) });
      signal(part, name);
      // A Redis that cannot read its file is never ready again.
      await again.catch(() => {
        const why = logs.split('\n').findLast((line) => line.includes(`${part} ended`));
        throw new Error(`${part} did not start again: ${why}`);
      });
    },
    restart: (part) => supervisor.restart(part),
    pause: (part) => void signal(part, 'SIGSTOP'),
    resume: (part) => void signal(part, 'SIGCONT'),
    stop,
  };
}
