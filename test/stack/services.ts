// Which parts the stack has, and what each is told: only gateway and dispatcher have the sealing key, only the gateway the tokens' secret.
import { join } from 'node:path';
import type { Output } from './output.ts';
import type { PartSpec } from './part.ts';
import { type RedisOptions, startRedis } from './redis.ts';
import type { Secrets } from './secrets.ts';
import { type ServiceSpec, startService } from './service.ts';
import type { StackSettings } from './stack-settings.ts';

/** What the example receiver checks signatures with: no secret, it stands in the repository. */
export const RECEIVER_SECRET = 'development-webhook-secret';

/** The order they are stopped in: who takes work first, who needs nobody last. */
export const partNames = ['gateway', 'worker', 'dispatcher', 'receiver', 'redis'] as const;

export interface Wiring {
  readonly root: string;
  readonly settings: InstanceType<typeof StackSettings>;
  readonly secrets: Secrets;
  readonly redisUrl: string;
  readonly receiverPort: number;
  readonly output: Output;
}

/** Settings that are not everybody's; whoever may know one is given it by name. */
const PRIVATE = [
  'JWT_SECRET',
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

/** The Node processes of the stack. */
export function serviceSpecs({ root, settings, secrets, redisUrl, receiverPort, output }: Wiring): ServiceSpec[] {
  const base = inherited(output);
  // Three on one machine: each takes a free port and says which in its line `ready`.
  const common = { NODE_ENV: 'development', ...base, REDIS_URL: redisUrl, OPERATIONS_PORT: '0' };
  const webhooks = {
    SECRETS_KEY: secrets.secretsKey,
    WEBHOOK_ALLOWED_NETWORKS: settings.WEBHOOK_ALLOWED_NETWORKS.join(','),
  };
  const entry = (name: string): string => join(root, 'apps', name, 'dist', 'main.js');
  return [
    {
      name: 'gateway',
      entry: entry('gateway'),
      cwd: root,
      env: {
        // A page that somebody works on may come from anywhere.
        CORS_ORIGINS: '*',
        ...common,
        ...webhooks,
        JWT_SECRET: secrets.jwtSecret,
        PORT: String(settings.PORT),
        HOST: settings.HOST,
      },
    },
    {
      name: 'worker',
      entry: entry('worker'),
      cwd: root,
      env: { ...common, DEPLOYMENTS_DIR: settings.DEPLOYMENTS_DIR },
    },
    { name: 'dispatcher', entry: entry('dispatcher'), cwd: root, env: { ...common, ...webhooks } },
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

/** Our own Redis as a part; started again it has the same addresses, so that everybody finds it. */
export const redisPart = (options: RedisOptions): PartSpec => ({
  name: 'redis',
  start: async (_signal, started) => {
    const redis = await startRedis(options);
    started(redis.pid);
    return redis;
  },
});
