// The parts of the stack and their settings. Gateway and dispatcher have the sealing key. The gateway alone has the tokens' secret.
// Each service has its own user of Redis.
import { join } from 'node:path';
import { longestStopMs } from '@inference-proxy/platform';
import type { Balancer } from './balancer.ts';
import type { Output } from './output.ts';
import type { PartSpec } from './part.ts';
import { type RedisOptions, startRedis } from './redis.ts';
import { instancesOf, type Scale } from './scale.ts';
import type { Secrets } from './secrets.ts';
import { type ServiceSpec, startService } from './service.ts';
import type { StackSettings } from './stack-settings.ts';

/** What the example receiver checks signatures with: no secret, it stands in the repository. */
export const RECEIVER_SECRET = 'development-webhook-secret';

/** The order they are stopped in: who takes work first, who needs nobody last. */
const ORDER = ['gateway', 'worker', 'dispatcher', 'receiver', 'redis'] as const;

/** What every part is called. */
export const partNames = (scale: Scale): string[] =>
  ORDER.flatMap((name) => (name in scale ? instancesOf(name, scale[name as keyof Scale]) : [name]));

/** A hung service is killed this long after its last deadline. */
const HUNG_MS = 3000;

export interface Wiring {
  readonly root: string;
  readonly settings: InstanceType<typeof StackSettings>;
  readonly scale: Scale;
  readonly secrets: Secrets;
  /** Of each service, with its user. */
  readonly redisUrl: (service: keyof Scale) => string;
  readonly receiverPort: number;
  /** Of services that there is one of; the others take a free port each, and say which in their line `ready`. */
  readonly operationsPorts?: Partial<Record<keyof Scale, number>>;
  readonly output: Output;
}

/** Settings that are not everybody's; whoever may know one is given it by name. */
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
  'WEBHOOK_ALLOWED_NETWORKS',
];

function inherited(output: Output): NodeJS.ProcessEnv {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !PRIVATE.includes(name)));
  // Their output is a pipe to us, and ends on the terminal.
  return output.colours ? { FORCE_COLOR: '1', ...env } : env;
}

/** The Node processes of the stack. Several gateways listen on ports of their own, behind one balancer. */
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
      env: own,
      stopLimitMs,
    }));
  });
}

type Program = Omit<ServiceSpec, 'service' | 'stopLimitMs'>;

function oneOfEach({
  root,
  settings,
  secrets,
  redisUrl,
  receiverPort,
  operationsPorts = {},
  output,
}: Wiring): Program[] {
  const base = inherited(output);
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
        // A page that somebody works on may come from anywhere.
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
      entry: join(root, 'examples', 'receivers', 'node', 'receiver.mjs'),
      cwd: root,
      env: { ...base, PORT: String(receiverPort), SECRET: RECEIVER_SECRET },
      readyLine: /listening/,
    },
  ];
}

/** A Node process as a part under supervision. */
export const servicePart = (spec: ServiceSpec, output: Output): PartSpec => ({
  name: spec.name,
  start: (signal, started) => startService(spec, output, signal, started),
});

/** A gateway that has its turns while it is ready: it is taken out when it is told to stop, or when it is gone. */
export const balancedPart = (spec: ServiceSpec, output: Output, balancer: Balancer): PartSpec => ({
  name: spec.name,
  async start(signal, started) {
    const running = await startService(spec, output, signal, started);
    if (running.port === undefined) throw new Error('it did not say where it listens');
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

/** Our own Redis as a part; started again it has the same addresses, so that everybody finds it. */
export const redisPart = (options: RedisOptions): PartSpec => ({
  name: 'redis',
  start: async (_signal, started) => {
    const redis = await startRedis(options);
    started(redis.pid);
    return redis;
  },
});
