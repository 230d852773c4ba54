// The whole stack for a test file: the built services as processes, a Redis that keeps what it has, apps that may be changed. Gone afterwards.
import { EventEmitter, once } from 'node:events';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '@inference-proxy/platform';
import { projectRoot } from './folders.ts';
import { Output } from './output.ts';
import type { PartSpec } from './part.ts';
import { readPids } from './pid-file.ts';
import { freePort } from './ports.ts';
import { obtainRedis, type RedisOptions, redisUrlOf } from './redis.ts';
import { ONE_OF_EACH } from './scale.ts';
import { developmentSecrets } from './secrets.ts';
import { partNames, redisPart, servicePart, serviceSpecs } from './services.ts';
import { StackSettings } from './stack-settings.ts';
import { Supervisor } from './supervisor.ts';

/** What a test may kill. */
export type KillablePart = 'gateway' | 'worker' | 'dispatcher' | 'redis';

export interface TestStack {
  /** The gateway's, on 127.0.0.1. */
  readonly port: number;
  readonly jwtSecret: string;
  readonly redisUrl: string;
  /** A copy of the apps: a test may change them. */
  readonly appsDir: string;
  /** Empty at the start: for what a test and its functions tell each other by files. */
  readonly marksDir: string;
  /** All that the services have logged so far. */
  logs(): string;
  /** Ends a part, by SIGKILL unless said otherwise; resolves when the supervisor has started it again. */
  kill(part: KillablePart, signal?: NodeJS.Signals): Promise<void>;
  /** Stops a part from doing anything (SIGSTOP), until `resume`; its connections stay open. */
  pause(part: KillablePart): void;
  resume(part: KillablePart): void;
  /** Stops everything and removes what it has written. */
  stop(): Promise<void>;
}

export interface TestStackOptions {
  /** A folder of apps, `<project>/<app>/`; those of `test/apps` unless said otherwise. */
  readonly apps?: string;
  /** Settings for all services, such as shortened times. */
  readonly env?: Record<string, string>;
}

export async function startTestStack({ apps, env = {} }: TestStackOptions = {}): Promise<TestStack> {
  const root = projectRoot();
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
  const port = await freePort();
  const settings = new StackSettings(
    readSettings(StackSettings.schema, { PORT: String(port), DATA_DIR: dataDir, DEPLOYMENTS_DIR: appsDir }),
  );
  const redis: RedisOptions & { port: number } = {
    dir: join(dataDir, 'redis'),
    binary: await obtainRedis(() => {}),
    port: await freePort(),
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
  const output = new Output(partNames(ONE_OF_EACH), sink, false);
  const secrets = developmentSecrets(dataDir);
  const redisUrl = redisUrlOf(redis);
  const specs = serviceSpecs({ root, settings, scale: ONE_OF_EACH, secrets, redisUrl, receiverPort: 0, output });
  const starts = new EventEmitter();
  const told = (part: PartSpec): PartSpec => ({
    ...part,
    async start(signal, started) {
      const running = await part.start(signal, started);
      starts.emit(part.name);
      return running;
    },
  });
  const supervisor = new Supervisor({
    dataDir,
    output,
    parts: specs
      .filter(({ name }) => name !== 'receiver')
      .map((spec) => [told(servicePart({ ...spec, env: { ...spec.env, NODE_ENV: 'test', ...env } }, output))]),
    base: told(redisPart(redis)),
  });
  const stop = async (): Promise<void> => {
    await supervisor.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await supervisor.start();
  } catch (error) {
    await stop();
    throw new Error(`${(error as Error).message}\n${logs}`);
  }
  const signal = (part: KillablePart, name: NodeJS.Signals): boolean =>
    process.kill(readPids(dataDir)[part] as number, name);
  return {
    port,
    jwtSecret: secrets.jwtSecret,
    redisUrl,
    appsDir,
    marksDir,
    logs: () => logs,
    async kill(part, name = 'SIGKILL') {
      const again = once(starts, part);
      signal(part, name);
      await again;
    },
    pause: (part) => void signal(part, 'SIGSTOP'),
    resume: (part) => void signal(part, 'SIGCONT'),
    stop,
  };
}
