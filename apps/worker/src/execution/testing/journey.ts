// A whole worker with a real Redis and the gateway's side of the store, for the journeys of runs.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AppDescription, Outcome } from '@inference-proxy/contracts';
import { connectRedis, createLogger, OperationsPort, phases, readSettings, Shutdown } from '@inference-proxy/platform';
import {
  DeliveryQueue,
  GatewayStore,
  Maintenance,
  type NewRun,
  newRunId,
  type RunReader,
  Shares,
} from '@inference-proxy/store';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import type { Redis } from 'ioredis';
import { WorkerSettings } from '../../settings.ts';
import { startWorker } from '../../start-worker.ts';
import { APPS } from './journey-apps.ts';

const logger = createLogger({ name: 'test', level: 'fatal' });

/** Deadlines that a stop never reaches, even on a busy machine. */
const deadlines = Object.fromEntries(Object.keys(phases).map((phase) => [phase, 120_000]));

interface Call {
  readonly runId: string;
  readonly reader: RunReader;
}

/** Waits until `check` returns a value. It polls, because a test cannot subscribe to the events of the store and the file system. */
export async function until<T>(check: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Reads the run's events to the outcome and returns the lines of its items. If `onItem` returns false for a line, the reader unsubscribes. */
export function read(
  reader: RunReader,
  onItem: (item: string) => unknown = () => true,
): Promise<{ items: string[]; outcome?: Outcome }> {
  return new Promise((resolve, reject) => {
    const items: string[] = [];
    const subscription = reader.events().subscribe({
      next: (event) => {
        if (event.type === 'outcome') return resolve({ items, outcome: event.outcome });
        if (event.type !== 'items') return;
        for (const item of event.batch.blob.toString().split('\n')) {
          items.push(item);
          if (onItem(item) !== false) continue;
          queueMicrotask(() => subscription.unsubscribe());
          return resolve({ items });
        }
      },
      error: reject,
    });
  });
}

/** A worker that serves the apps of `journey-apps.ts` as project `demo`, and a gateway. */
export class Journey {
  readonly clients: Redis[] = [];
  readonly workers: Shutdown[] = [];
  readonly #readers = new Set<RunReader>();
  readonly #redis: TestRedis;
  readonly #folder: string;
  readonly #deliveries: DeliveryQueue;
  readonly gateway: GatewayStore;
  readonly #maintenance: Maintenance;

  private constructor(redis: TestRedis, folder: string) {
    this.#redis = redis;
    this.#folder = folder;
    this.#deliveries = new DeliveryQueue(this.#connect('deliveries'), logger);
    const shared = { commands: this.#connect('g'), deliveries: this.#deliveries, logger, shares: new Shares() };
    this.gateway = new GatewayStore({ ...shared, subscriber: this.#connect('gs'), gatewayId: 'g1' });
    this.#maintenance = new Maintenance(shared);
    this.gateway.start();
    this.#maintenance.start();
  }

  static async open(): Promise<Journey> {
    const journey = new Journey(await testRedis(), await mkdtemp(join(tmpdir(), 'worker-')));
    for (const [app, files] of Object.entries(APPS))
      for (const [name, text] of Object.entries(files)) await journey.write(app, name, text);
    Object.assign(process.env, { REDIS_URL: journey.redis.url, JWT_SECRET: 'not for apps' });
    await journey.worker();
    return journey;
  }

  async close(): Promise<void> {
    for (const shutdown of this.workers) await shutdown.stop('test over');
    this.#maintenance.stop();
    this.gateway.stop();
    await this.#deliveries.close();
    for (const client of this.clients) client.disconnect();
    await this.redis.stop();
    await rm(this.#folder, { recursive: true });
  }

  get redis(): TestRedis {
    return this.#redis;
  }

  closeReaders(): void {
    for (const reader of this.#readers) reader.close();
    this.#readers.clear();
  }

  /** Starts another worker. */
  async worker(): Promise<Shutdown> {
    const settings = new WorkerSettings(
      readSettings(WorkerSettings.schema, {
        REDIS_URL: this.redis.url,
        DEPLOYMENTS_DIR: this.path('apps'),
        LEASE_RENEW_MS: '200',
        SHUTDOWN_GRACE_S: '10',
      }),
    );
    const shutdown = new Shutdown({ logger, deadlines, exit: () => undefined });
    this.workers.push(shutdown);
    await startWorker({ settings, logger, shutdown, operations: new OperationsPort(), tracing: undefined });
    return shutdown;
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  /** Writes a file of an app. */
  async write(app: string, name: string, text: string): Promise<void> {
    await mkdir(this.path(`apps/demo/${app}`), { recursive: true });
    await writeFile(this.path(`apps/demo/${app}/${name}`), text);
  }

  /** Resolves with the content of a file that has content. */
  fileSays(name: string): Promise<string> {
    return until(async () => (await readFile(this.path(name), 'utf8').catch(() => undefined)) || undefined);
  }

  /** Resolves when the app is announced in this state. */
  app(name: string, state: AppDescription['state']): Promise<AppDescription> {
    return until(async () => {
      const found = (await this.gateway.registry.apps('demo')).get(name);
      return found?.state === state ? found : undefined;
    });
  }

  async call(
    name: string,
    fn: string,
    params: object,
    more: Partial<NewRun> = {},
    live: 'items' | 'answer' = 'items',
  ): Promise<Call> {
    const runId = newRunId();
    const { accepted, reader } = this.gateway.acceptor.accept(
      {
        project: 'demo',
        runId,
        app: name,
        fn,
        params: Buffer.from(JSON.stringify(params)),
        promised: false,
        paced: true,
        keepMs: 60_000,
        absentMs: 0,
        queueLimit: 1_000,
        queueTimeoutMs: 60_000,
        ...more,
      },
      live,
    );
    const answer = await accepted;
    if (answer.state !== 'accepted' || !reader) throw new Error(`the run was not accepted: ${answer.state}`);
    this.#readers.add(reader);
    return { runId, reader };
  }

  /** Calls a function, and reads its run to the outcome. */
  async run(name: string, fn: string, params: object, more: Partial<NewRun> = {}) {
    return read((await this.call(name, fn, params, more)).reader);
  }

  #connect(name: string): Redis {
    const client = connectRedis(this.redis.url, name, logger, { whileAway: 'wait' });
    this.clients.push(client);
    return client;
  }
}
