// `npm start`, from the first check to the end of the last process.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { banner, type Ready } from './banner.ts';
import { projectRoot } from './folders.ts';
import { takeLock } from './lock.ts';
import type { Output } from './output.ts';
import { Balancer } from './parts/balancer.ts';
import { endLeftovers } from './parts/pid-file.ts';
import type { ServiceSpec } from './parts/service.ts';
import { Supervisor } from './parts/supervisor.ts';
import { freePort, whyNotListen } from './ports.ts';
import { obtainRedis, type RedisBinary } from './redis/binary.ts';
import { type RedisOptions, redisUrlOf } from './redis/server.ts';
import { ONE_OF_EACH, type Scale } from './scale.ts';
import { developmentRedisPasswords, developmentSecrets, type Secrets } from './secrets.ts';
import { balancedPart, redisPart, servicePart, serviceSpecs, type Wiring } from './services.ts';
import type { StackSettings } from './stack-settings.ts';

/** The stack cannot start. The message is one line. */
export class CannotStart extends Error {}

export interface StackOptions {
  readonly settings: InstanceType<typeof StackSettings>;
  readonly output: Output;
  /** Default: one process of each service. */
  readonly scale?: Scale;
  /** Time of the command, Unix milliseconds. */
  readonly typedAt: number;
  /** Returns the built services. A test passes simulated services. */
  readonly services?: (wiring: Wiring) => ServiceSpec[];
  /** Returns the text of a started stack. Default: the commands of `npm start`. */
  readonly welcome?: (ready: Ready) => string | Promise<string>;
}

/** A stack that is starting or runs. */
export interface Stack {
  /** Resolves when all parts are ready and the output says so. @throws Error with a message of one line, after all parts have stopped */
  readonly ready: Promise<void>;
  /** Stops all parts, the gateway first, Redis last. May be called twice. */
  stop(): Promise<void>;
  /** Kills all parts except Redis. Redis is stopped. */
  force(): Promise<void>;
}

/** Whether a command is a process of this stack, because another process may have the pid by now. */
const ours = (root: string) => (command: string) =>
  command.includes(join(root, 'apps')) ||
  command.includes(join(root, 'examples')) ||
  /(redis|valkey)-server/.test(command);

async function receiverPort(wanted: number): Promise<number> {
  return (await whyNotListen('127.0.0.1', wanted)) === undefined ? wanted : freePort();
}

/** Returns the operations ports of the contract for services with one process, except ports that another program uses. */
async function operationsPorts(scale: Scale): Promise<Partial<Record<keyof Scale, number>>> {
  const usual: Scale = { gateway: 9464, worker: 9465, dispatcher: 9466 };
  const names = Object.keys(usual) as (keyof Scale)[];
  const free = await Promise.all(
    names.map(async (name) => scale[name] === 1 && (await whyNotListen('127.0.0.1', usual[name])) === undefined),
  );
  return Object.fromEntries(names.filter((_, at) => free[at]).map((name) => [name, usual[name]]));
}

type OwnRedis = RedisOptions & { readonly port: number; readonly binary: RedisBinary };

/** Returns the options of the stack's Redis. Finds the program first, because a missing Redis prevents the start. */
async function ownRedis(dataDir: string, output: Output): Promise<OwnRedis> {
  return {
    dir: join(dataDir, 'redis'),
    binary: await obtainRedis(output.say),
    // Used if the path of the data folder is too long for a socket.
    port: await freePort(),
    tcp: false,
    passwords: developmentRedisPasswords(dataDir),
  };
}

/** Returns the URL for callers on this machine. */
function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

export function openStack({
  settings,
  output,
  typedAt,
  scale = ONE_OF_EACH,
  services = serviceSpecs,
  welcome = banner,
}: StackOptions): Stack {
  const root = projectRoot();
  const dataDir = resolve(root, settings.DATA_DIR);
  let supervisor: Supervisor | undefined;
  /** In front of several gateways. */
  const balancer = scale.gateway > 1 ? new Balancer() : undefined;
  /** Releases the data folder. */
  let release = (): void => {};
  let stopping = false;
  const stop = async (): Promise<void> => {
    stopping = true;
    balancer?.refuse();
    await supervisor?.stop();
    balancer?.close();
    release();
  };

  const start = async (): Promise<void> => {
    mkdirSync(dataDir, { recursive: true });
    release = takeLock(dataDir);
    await endLeftovers(dataDir, ours(root), output.say);
    const { PORT, HOST } = settings;
    const refused = await whyNotListen(HOST, PORT);
    if (refused) throw new CannotStart(refused);
    const made = developmentSecrets(dataDir);
    const secrets: Secrets = {
      jwtSecret: settings.JWT_SECRET ?? made.jwtSecret,
      secretsKey: settings.SECRETS_KEY ?? made.secretsKey,
    };
    const redis = settings.REDIS_URL === undefined ? await ownRedis(dataDir, output) : undefined;
    const redisUrl: Wiring['redisUrl'] = (service) =>
      redis ? redisUrlOf(redis, service) : (settings.REDIS_URL as string);
    const receiver = await receiverPort(settings.RECEIVER_PORT);
    const specs = services({
      root,
      settings,
      scale,
      secrets,
      redisUrl,
      receiverPort: receiver,
      dataDir,
      operationsPorts: await operationsPorts(scale),
      output,
    });
    const part = (spec: ServiceSpec) =>
      balancer && spec.service === 'gateway' ? balancedPart(spec, output, balancer) : servicePart(spec, output);
    supervisor = new Supervisor({
      dataDir,
      output,
      parts: [...Map.groupBy(specs, ({ service }) => service).values()].map((group) => group.map(part)),
      ...(redis && { base: redisPart(redis) }),
    });
    if (stopping) return;
    await balancer?.listen(HOST, PORT);
    output.say(
      `Starting ${[...(redis ? [`Redis ${redis.binary.version}`] : []), ...specs.map(({ name }) => name)].join(', ')}`,
    );
    output.say(
      `Webhooks may reach ${settings.WEBHOOK_ALLOWED_NETWORKS.join(', ')}, because this is a development stack`,
    );
    await supervisor.start();
    output.plain(
      await welcome({
        url: urlOf(HOST, PORT),
        jwtSecret: secrets.jwtSecret,
        hasConsole: settings.CONSOLE,
        receiverPort: receiver,
        dataDir,
        tookMs: Date.now() - typedAt,
      }),
    );
  };

  const ready = start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { ready, stop, force: async () => supervisor?.force() };
}
