// Contract 4: a store and dispatchers on a real Redis for tests, with runs that end and the states of their deliveries.
import { setTimeout as sleep } from 'node:timers/promises';
import { SealedBox } from '@inference-proxy/crypto';
import { createLogger, nestContext, OperationsPort, readSettings, Shutdown } from '@inference-proxy/platform';
import {
  DeliveryLog,
  DeliveryQueue,
  DeliveryStore,
  defaultTimings,
  GatewayStore,
  Maintenance,
  newRunId,
  Shares,
  type StoreTimings,
  WorkerStore,
} from '@inference-proxy/store';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { Redis } from 'ioredis';
import { JobConsumer } from '../deliveries/job-consumer.ts';
import { dispatcherModule } from '../dispatcher.module.ts';
import { HostWatch } from '../fairness/host-watch.ts';
import { DispatcherSettings } from '../settings.ts';

export const PROJECT = 'demo';
export const KEY = Buffer.alloc(32, 3);
export const SECRET = 'whsec_aGVsbG8gd29ybGQ=';
const box = new SealedBox([KEY]);
const quiet = createLogger({ name: 'test', level: 'silent' });
/** Longer than any test, so a slow machine does not look like an unreachable store. */
const NEVER_MS = 600_000;
const timings: StoreTimings = {
  ...defaultTimings,
  reapMs: 200,
  handoverMs: 500,
  leaseMs: NEVER_MS,
  commandMs: NEVER_MS,
};
const BULK = 200;

/** Resolves when the condition is true. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}

export class DeliveringStore {
  readonly #clients: Redis[] = [];
  readonly #dispatchers: Shutdown[] = [];

  readonly #queue: DeliveryQueue;
  readonly #gateway: GatewayStore;
  readonly #maintenance: Maintenance;
  readonly #worker: WorkerStore;

  private constructor(
    readonly redis: TestRedis,
    queue: DeliveryQueue,
    gateway: GatewayStore,
    maintenance: Maintenance,
    worker: WorkerStore,
    clients: Redis[],
  ) {
    this.#queue = queue;
    this.#gateway = gateway;
    this.#maintenance = maintenance;
    this.#worker = worker;

    this.#clients.push(...clients);
  }

  static async open(): Promise<DeliveringStore> {
    const redis = await testRedis();
    const clients: Redis[] = [];
    const connect = (): Redis => {
      const client = new Redis(redis.url, { maxRetriesPerRequest: null });
      client.on('error', () => {});
      clients.push(client);
      return client;
    };
    const queue = new DeliveryQueue(connect(), quiet);
    const shared = { deliveries: queue, logger: quiet, timings };
    const ofGateway = { ...shared, commands: connect(), shares: new Shares() };
    const gateway = new GatewayStore({ ...ofGateway, subscriber: connect(), gatewayId: 'g1' });
    const maintenance = new Maintenance(ofGateway);
    const worker = new WorkerStore({ commands: connect(), subscriber: connect(), workerId: 'w1', ...shared });
    gateway.start();
    maintenance.start();
    await worker.serve(PROJECT);
    return new DeliveringStore(redis, queue, gateway, maintenance, worker, clients);
  }

  async close(): Promise<void> {
    await this.stopDispatchers();
    this.#maintenance.stop();
    this.#gateway.stop();
    this.#worker.close();
    await this.#queue.close();
    for (const client of this.#clients) client.disconnect();
    await this.redis.stop();
  }

  /** A connection for reads by the test. */
  get client(): Redis {
    return this.#clients[0] as Redis;
  }

  get log(): DeliveryLog {
    return this.#gateway.deliveryLog;
  }

  get attempts(): DeliveryStore {
    return new DeliveryStore(this.client, timings);
  }

  async dispatcher(env: Record<string, string> = {}, logger = quiet): Promise<Shutdown> {
    const settings = new DispatcherSettings(
      readSettings(DispatcherSettings.schema, {
        REDIS_URL: this.redis.url.replace(/^unix:/, 'redis+unix:'),
        SECRETS_KEY: KEY.toString('base64'),
        WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
        // The limits are long, so an answer is in time on a slow machine.
        WEBHOOK_CONNECT_TIMEOUT_S: '60',
        WEBHOOK_TIMEOUT_S: '60',
        WEBHOOK_RECORD_S: '60',
        WEBHOOK_SCHEDULE: '0,0.05,0.05',
        ...env,
      }),
    );
    const shutdown = new Shutdown({ logger });
    const boot = { settings, logger, shutdown, operations: new OperationsPort(), tracing: undefined };
    const context = await nestContext(dispatcherModule(boot), boot);
    context.get(HostWatch).start();
    context.get(JobConsumer).start();
    this.#dispatchers.push(shutdown);
    return shutdown;
  }

  async stopDispatchers(): Promise<void> {
    await Promise.all(this.#dispatchers.splice(0).map((shutdown) => shutdown.stop('the test is over')));
  }

  /** Ends one successful run with `result` for each webhook URL. Returns the ids of the runs. */
  async runsTo(urls: readonly string[], result = '{"n":1.0}', project = PROJECT): Promise<string[]> {
    const ids: string[] = [];
    if (project !== PROJECT) await this.#worker.serve(project);
    for (let from = 0; from < urls.length; from += BULK) {
      ids.push(...(await this.#bulk(urls.slice(from, from + BULK), result, project)));
    }
    return ids;
  }

  async runTo(url: string, result?: string): Promise<string> {
    const [runId] = await this.runsTo([url], result);
    return runId as string;
  }

  /** Returns the state of a run's delivery (`pending`, `delivered`, …), or nothing for an unknown run. */
  async state(runId: string, project = PROJECT): Promise<string | undefined> {
    const [delivery] = (await this.log.ofRun(project, runId)) ?? [];
    return delivery?.state;
  }

  /** Resolves with the final state of the delivery. */
  async settled(runId: string, project = PROJECT): Promise<string> {
    for (;;) {
      const state = await this.state(runId, project);
      if (state === 'delivered' || state === 'failed') return state;
      await sleep(5);
    }
  }

  async #bulk(urls: readonly string[], result: string, project: string): Promise<string[]> {
    const ids = urls.map(() => newRunId());
    const accepted = ids.map((runId, at) => {
      const url = urls[at] as string;
      const webhook = { url, secret: box.seal(Buffer.from(SECRET), { project, app: 'hello', runId, url }) };
      return this.#gateway.acceptor.accept(
        {
          project,
          runId,
          app: 'hello',
          fn: 'run',
          params: Buffer.from('{}'),
          promised: true,
          paced: false,
          keepMs: NEVER_MS,
          queueLimit: 100_000,
          queueTimeoutMs: NEVER_MS,
          webhook,
        },
        'outcome',
      ).accepted;
    });
    await Promise.all(accepted);
    const outcome = {
      state: 'succeeded',
      items: 0,
      streamed: false,
      result: Buffer.from(result),
      runTimeMs: '1.5',
    } as const;
    for (let left = ids.length; left > 0; ) {
      const { runs } = await this.#worker.take(project, [{ app: 'hello', slots: left }]);
      left -= runs.length;
      await Promise.all(runs.map(({ runId, token }) => this.#worker.end(project, { runId, token, outcome })));
    }
    return ids;
  }
}
