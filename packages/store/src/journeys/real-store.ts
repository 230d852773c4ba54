// Gateways and workers on one private Redis, for tests of what callers see.
import { setImmediate as turn } from 'node:timers/promises';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { Redis } from 'ioredis';
import {
  DeliveryQueue,
  GatewayStore,
  type GatewayStoreOptions,
  Maintenance,
  type MaintenanceOptions,
  type NewRun,
  newRunId,
  type RunEvent,
  type RunReader,
  Shares,
  type TakenRun,
  WorkerStore,
  type WorkerStoreOptions,
} from '../index.ts';
import { redisInfo } from '../redis-info.ts';

const logger = { warn: () => {}, error: () => {} };
export const APP = 'hello';
/** Times for a busy machine: no store counts as away. */
const PATIENT = { commandMs: 600_000, leaseMs: 600_000 };

/** A gateway process: the store's interface for calls, and maintenance beside it. */
export class MaintainingGateway extends GatewayStore {
  readonly #maintenance: Maintenance;

  constructor(options: GatewayStoreOptions & MaintenanceOptions) {
    super(options);
    this.#maintenance = new Maintenance(options);
  }

  override start(): void {
    super.start();
    this.#maintenance.start();
  }

  override stop(): void {
    this.#maintenance.stop();
    super.stop();
  }
}

export class RealStore {
  readonly #clients: Redis[] = [];
  readonly #closing: (() => unknown)[] = [];
  readonly admin: Redis;
  readonly deliveries: DeliveryQueue;

  private constructor(readonly redis: TestRedis) {
    this.admin = this.#connect();
    this.deliveries = new DeliveryQueue(this.#connect(), logger);
  }

  static async open(args: readonly string[] = []): Promise<RealStore> {
    return new RealStore(await testRedis({ args }));
  }

  async close(): Promise<void> {
    for (const close of this.#closing) close();
    await this.deliveries.close();
    for (const client of this.#clients) client.disconnect();
    await this.redis.stop();
  }

  /** Returns a gateway that attends and does maintenance only after `start`. */
  gateway(gatewayId: string, options: Partial<GatewayStoreOptions & MaintenanceOptions> = {}): GatewayStore {
    const parts = { commands: this.#connect(), subscriber: this.#connect(), deliveries: this.deliveries, logger };
    const timings = { ...PATIENT, ...options.timings };
    const gateway = new MaintainingGateway({ ...parts, shares: new Shares(), gatewayId, ...options, timings });
    this.#closing.push(() => gateway.stop());
    return gateway;
  }

  async worker(workerId: string, project: string, options: Partial<WorkerStoreOptions> = {}): Promise<WorkerStore> {
    const parts = { commands: this.#connect(), subscriber: this.#connect(), deliveries: this.deliveries, logger };
    const worker = new WorkerStore({ ...parts, workerId, ...options, timings: { ...PATIENT, ...options.timings } });
    this.#closing.push(() => worker.close());
    await worker.serve(project);
    return worker;
  }

  /** Returns the bytes that Redis uses. The buffers of its connections grow and shrink independently of the test. */
  async usedMemory(connections: 'with connections' | 'without' = 'without'): Promise<number> {
    const fields = redisInfo(await this.admin.info('memory'));
    const bytes = (name: string): number => Number(fields.get(name));
    return bytes('used_memory') - (connections === 'without' ? bytes('mem_clients_normal') : 0);
  }

  /** Returns the memory in Redis of the keys that begin with `prefix`, including their values. */
  async keysMemory(prefix = ''): Promise<number> {
    const pipeline = this.admin.pipeline();
    for (const key of await this.admin.keys(`${prefix}*`)) pipeline.memory('USAGE', key, 'SAMPLES', 0);
    const answers = (await pipeline.exec()) ?? [];
    return answers.reduce((sum, [, size]) => sum + Number(size), 0);
  }

  #connect(): Redis {
    const client = new Redis(this.redis.socket ?? String(this.redis.port), { maxRetriesPerRequest: null });
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }
}

/** Returns a plain call. `more` replaces its defaults. */
export const call = (project: string, more: Partial<NewRun> = {}): NewRun => ({
  project,
  runId: newRunId(),
  app: APP,
  fn: 'run',
  params: Buffer.from('{}'),
  promised: false,
  paced: false,
  keepMs: 600_000,
  queueLimit: 10_000,
  queueTimeoutMs: 600_000,
  ...more,
});

/** Takes one run, for a version with a name as long as a worker's. */
export async function takeOne(worker: WorkerStore, project: string, version = '0123456789abcdef'): Promise<TakenRun> {
  const { runs } = await worker.take(project, [{ app: APP, slots: 1, version }]);
  if (!runs[0]) throw new Error('nothing is queued');
  return runs[0];
}

/** Appends strings. The first string gets the number `first`. */
export const append = (worker: WorkerStore, { project, runId, token }: TakenRun, first: number, ...items: string[]) =>
  worker.append(project, {
    runId,
    token,
    batch: { first, count: items.length, kind: 's', blob: Buffer.from(items.join('\n')) },
  });

export const succeed = (worker: WorkerStore, { project, runId, token }: TakenRun, items: number, result?: string) =>
  worker.end(project, {
    runId,
    token,
    outcome: {
      state: 'succeeded',
      items,
      streamed: items > 0,
      runTimeMs: '1',
      ...(result !== undefined && { result: Buffer.from(result) }),
    },
  });

/** Returns all events of a reader up to its completion. Rejects if the reader fails. */
export const collect = (reader: RunReader): Promise<RunEvent[]> =>
  new Promise((resolve, reject) => {
    const events: RunEvent[] = [];
    reader.events().subscribe({ next: (event) => events.push(event), error: reject, complete: () => resolve(events) });
  });

export const itemsOf = (events: readonly RunEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'items' ? event.batch.blob.toString().split('\n') : []));

/** Waits until `holds` returns true. The test's own time limit ends the wait. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await turn();
}
