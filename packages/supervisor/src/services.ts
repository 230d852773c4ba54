// The parts of the stack and their settings. The gateway and the dispatcher have the sealing key. Only the gateway has the token secret.
// Each service has its own user of Redis.
import { join } from 'node:path';
import { longestStopMs } from '@inference-proxy/platform';
import type { Output } from './output.ts';
import type { Balancer } from './parts/balancer.ts';
import type { PartSpec } from './parts/part.ts';
import { type ServiceSpec, startService } from './parts/service.ts';
import { type RedisOptions, startRedis } from './redis/server.ts';
import { instancesOf, type Scale } from './scale.ts';
import type { Secrets } from './secrets.ts';
import type { StackSettings } from './stack-settings.ts';

/** The secret of the example receiver, published in this repository. */
export const RECEIVER_SECRET = 'development-webhook-secret';

/** The order of the stop: the service that accepts work first, and the service that all others need last. */
const ORDER = ['gateway', 'worker', 'dispatcher', 'receiver', 'redis'] as const;

/** Returns the names of all parts. */
export const partNames = (scale: Scale): string[] =>
  ORDER.flatMap((name) => (name in scale ? instancesOf(name, scale[name as keyof Scale]) : [name]));

/** A hanging service is killed this long after its last deadline. */
const HUNG_MS = 3000;

export interface Wiring {
  readonly root: string;
  readonly settings: InstanceType<typeof StackSettings>;
  readonly scale: Scale;
  readonly secrets: Secrets;
  /** Returns the URL of a service's user. */
  readonly redisUrl: (service: keyof Scale) => string;
  readonly receiverPort: number;
  /** Folder of bundles and of unpacked versions. */
  readonly dataDir: string;
  /** Ports of services with one process. Other processes take a free port and log it in their line `ready`. */
  readonly operationsPorts?: Partial<Record<keyof Scale, number>>;
  readonly output: Output;
}

/** Settings that a service inherits only by name in this file. */
const PRIVATE = [
  'JWT_SECRET',
  'JWT_SECRETS',
  'JWT_PUBLIC_KEY',
  'JWT_JWKS_URL',
  'SECRETS_KEY',
  'REDIS_URL',
  'PORT',
  'HOST',
  'OPERATIONS_PORT',
  'BUNDLE_CACHE_DIR',
  'ENVIRONMENTS_DIR',
  'WEBHOOK_ALLOWED_NETWORKS',
];

function inherited(output: Output): NodeJS.ProcessEnv {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !PRIVATE.includes(name)));
  // Services write to a pipe, whose text this process shows in a terminal with colours.
  return output.colours ? { FORCE_COLOR: '1', ...env } : env;
}

/** Returns the Node processes of the stack. Several gateways listen on separate ports behind one balancer. */
export function serviceSpecs(wiring: Wiring): ServiceSpec[] {
  const { settings, scale } = wiring;
  const stopLimitMs = longestStopMs({ delayS: settings.SHUTDOWN_DELAY_S, graceS: settings.SHUTDOWN_GRACE_S }) + HUNG_MS;
  return oneOfEach(wiring).flatMap((spec) => {
    const { name } = spec;
    const count = name in scale ? scale[name as keyof Scale] : 1;
    const own = name === 'gateway' && count > 1 ? { ...spec.env, HOST: '127.0.0.1', PORT: '0' } : spec.env;
    return instancesOf(name, count).map((instance) => ({
      ...spec,
      name: instance,
      service: name,
      env: name === 'worker' ? { ...own, ...foldersOf(wiring.dataDir, instance) } : own,
      stopLimitMs,
    }));
  });
}

/** Returns the folders of a worker. Two workers must not share one, because a function may write into its folder. */
const foldersOf = (dataDir: string, instance: string) => ({
  BUNDLE_CACHE_DIR: join(dataDir, 'bundle-cache', instance),
  ENVIRONMENTS_DIR: join(dataDir, 'environments', instance),
});

type Program = Omit<ServiceSpec, 'service' | 'stopLimitMs'>;

function oneOfEach({
  root,
  settings,
  secrets,
  redisUrl,
  receiverPort,
  dataDir,
  operationsPorts = {},
  output,
}: Wiring): Program[] {
  const base = { BUNDLES_URL: `file:${join(dataDir, 'bundles')}`, ...inherited(output) };
  const common = (service: keyof Scale) => ({ NODE_ENV: 'development', ...base, REDIS_URL: redisUrl(service) });
  const webhooks = {
    SECRETS_KEY: secrets.secretsKey,
    WEBHOOK_ALLOWED_NETWORKS: settings.WEBHOOK_ALLOWED_NETWORKS.join(','),
  };
  const operations = (name: keyof Scale) => ({ OPERATIONS_PORT: String(operationsPorts[name] ?? 0) });
  const entry = (name: string): string => join(root, 'apps', name, 'dist', 'bundle', 'main.js');
  return [
    {
      name: 'gateway',
      entry: entry('gateway'),
      cwd: root,
      env: {
        // A web page under development may come from any origin.
        CORS_ORIGINS: '*',
        ...common('gateway'),
        ...operations('gateway'),
        ...webhooks,
        JWT_SECRET: secrets.jwtSecret,
        ...(settings.JWT_SECRETS !== undefined && { JWT_SECRETS: settings.JWT_SECRETS }),
        PORT: String(settings.PORT),
        HOST: settings.HOST,
      },
    },
    {
      name: 'worker',
      entry: entry('worker'),
      cwd: root,
      env: { ...common('worker'), ...operations('worker'), DEPLOYMENTS_DIR: settings.DEPLOYMENTS_DIR },
    },
    {
      name: 'dispatcher',
      entry: entry('dispatcher'),
      cwd: root,
      env: { ...common('dispatcher'), ...operations('dispatcher'), ...webhooks },
    },
    {
      name: 'receiver',
      entry: join(root, 'examples', 'receivers', 'receiver.mjs'),
      cwd: root,
      env: { ...base, PORT: String(receiverPort), SECRET: RECEIVER_SECRET },
      readyLine: /listening/,
    },
  ];
}

/** Makes a supervised part of a Node process. */
export const servicePart = (spec: ServiceSpec, output: Output): PartSpec => ({
  name: spec.name,
  start: (signal, started) => startService(spec, output, signal, started),
});

/** Makes a part of a gateway behind the balancer. The balancer removes a gateway that is stopped or has ended. */
export const balancedPart = (spec: ServiceSpec, output: Output, balancer: Balancer): PartSpec => ({
  name: spec.name,
  async start(signal, started) {
    const running = await startService(spec, output, signal, started);
    if (running.port === undefined) throw new Error(`${spec.name} reported that it is ready without its port`);
    balancer.add(spec.name, running.port);
    const out = (): void => balancer.remove(spec.name);
    void running.exited.then(out);
    return {
      ...running,
      stop() {
        out();
        return running.stop();
      },
    };
  },
});

/** Makes a part of the stack's Redis. A restarted Redis has the same addresses, so that clients reconnect. */
export const redisPart = (options: RedisOptions): PartSpec => ({
  name: 'redis',
  start: async (_signal, started) => {
    const redis = await startRedis(options);
    started(redis.pid);
    return redis;
  },
});
