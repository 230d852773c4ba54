// The whole stack for a test file: the built services as processes, a Redis that keeps what it has, apps that may be changed. Gone afterwards.
import { EventEmitter, once } from 'node:events';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '@inference-proxy/platform';
import { Balancer } from './balancer.ts';
import { refuseOldBundles } from './bundles.ts';
import { projectRoot } from './folders.ts';
import { Output } from './output.ts';
import type { PartSpec } from './part.ts';
import { readPids } from './pid-file.ts';
import { freePort } from './ports.ts';
import { obtainRedis, type RedisOptions, type RedisUser, redisUrlOf } from './redis.ts';
import { deniedCommands } from './redis-denials.ts';
import { instancesOf, ONE_OF_EACH, type Scale } from './scale.ts';
import { developmentRedisPasswords, developmentSecrets } from './secrets.ts';
import type { ServiceSpec } from './service.ts';
import { balancedPart, partNames, redisPart, servicePart, serviceSpecs } from './services.ts';
import { StackSettings } from './stack-settings.ts';
import { Supervisor } from './supervisor.ts';

/** What a test may kill; numbered from 1 where there are several. */
export type KillablePart = keyof Scale | `${keyof Scale}-${number}` | 'redis';

export interface TestStack {
  /** The gateway's, or that in front of all gateways, on 127.0.0.1. */
  readonly port: number;
  /** Of each gateway, where there are several behind that port. */
  gatewayPorts(): readonly number[];
  /** Of a part's process. */
  pid(part: KillablePart): number;
  readonly jwtSecret: string;
  /** Of Redis, for `admin`. */
  readonly redisUrl: string;
  /** As a service has it, or another of the users. */
  redisUrlOf(user: RedisUser): string;
  /** A copy of the apps: a test may change them. */
  readonly appsDir: string;
  /** Empty at the start: for what a test and its functions tell each other by files. */
  readonly marksDir: string;
  /** All that the services have logged so far. */
  logs(): string;
  /** Ends a part, by SIGKILL unless said otherwise; resolves when the supervisor has started it again. */
  kill(part: KillablePart, signal?: NodeJS.Signals): Promise<void>;
  /** Ends a service in order, taken out of turn first, and starts it again; resolves when it is ready. */
  restart(part: KillablePart): Promise<void>;
  /** Stops a part from doing anything (SIGSTOP), until `resume`; its connections stay open. */
  pause(part: KillablePart): void;
  resume(part: KillablePart): void;
  /** Stops everything and removes what it has written. @throws Error where Redis has denied a service a command */
  stop(): Promise<void>;
}

/** A part that was killed is started again by then, or never. */
const STARTS_AGAIN_MS = 120_000;

export interface TestStackOptions {
  /** A folder of apps, `<project>/<app>/`; those of `test/apps` unless said otherwise. */
  readonly apps?: string;
  /** Settings for all services, such as shortened times; or of each part by its name. @param redisUrl the part's own */
  readonly env?: Record<string, string> | ((part: string, redisUrl: string) => Record<string, string>);
  /** One of each, unless said otherwise. */
  readonly scale?: Scale;
  /** Where the gateway, or what is in front of several, listens; a free port unless said otherwise. */
  readonly port?: number;
  /** Where Redis listens, what it is run by and with; its own unless said otherwise. */
  readonly redis?: Pick<RedisOptions, 'port' | 'binary' | 'args'>;
  /** Set by a test that sends commands which Redis must deny. */
  readonly denials?: 'expected';
  /** Redis' folder; one that is removed with the stack unless said otherwise. */
  readonly redisDir?: string;
}

export async function startTestStack({
  apps,
  env = {},
  scale = ONE_OF_EACH,
  port: wanted,
  redis: wantedRedis,
  redisDir,
  denials,
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
      return true;
    },
    once: () => {},
  };
  const output = new Output(partNames(scale), sink, false);
  const secrets = developmentSecrets(dataDir);
  const urlOf = (user: RedisUser): string => redisUrlOf(redis, user);
  const specs = serviceSpecs({ root, settings, scale, secrets, redisUrl: urlOf, receiverPort: 0, output });
  const starts = new EventEmitter();
  const ports = new Map<string, number>();
  const told = (part: PartSpec): PartSpec => ({
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
    return told(balanced ? balancedPart(tested, output, balancer) : servicePart(tested, output));
  };
  const services = Map.groupBy(
    specs.filter(({ name }) => name !== 'receiver'),
    ({ service }) => service,
  );
  const supervisor = new Supervisor({
    dataDir,
    output,
    parts: [...services.values()].map((group) => group.map(part)),
    base: told(redisPart(redis)),
  });
  const stop = async (): Promise<void> => {
    balancer?.refuse();
    const denied = await deniedCommands(urlOf('admin'));
    await supervisor.stop();
    balancer?.close();
    await rm(folder, { recursive: true, force: true });
    if (denied.length > 0 && denials !== 'expected')
      throw new Error(`Redis has denied commands (deploy/redis/users.acl):\n${denied.join('\n')}`);
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
      // A Redis that cannot read its file any more never does.
      await again.catch(() => {
        const why = logs.split('\n').findLast((line) => line.includes(`${part} ended`));
        throw new Error(`${part} is not started again: ${why}`);
      });
    },
    restart: (part) => supervisor.restart(part),
    pause: (part) => void signal(part, 'SIGSTOP'),
    resume: (part) => void signal(part, 'SIGCONT'),
    stop,
  };
}
