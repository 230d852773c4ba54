// The services of one round: gateways, workers, and their connections to Redis.
import type { TestRedis } from '@inference-proxy/test/redis';
import { Redis } from 'ioredis';
import { DeliveryQueue } from '../deliveries/queue.ts';
import { defaultTimings } from '../timings.ts';
import type { Faults } from './faults.ts';
import type { History } from './history.ts';
import { SimulatedGateway } from './simulated-gateway.ts';
import { SimulatedWorker } from './simulated-worker.ts';

export const timings = {
  ...defaultTimings,
  leaseMs: 500,
  renewMs: 60,
  attendMs: 60,
  reapMs: 40,
  pauseMs: 250,
  commandMs: 150,
  handoverMs: 200,
  staleMs: 50,
};

const GATEWAYS = 2;
const WORKERS = 3;
const silent = { warn: () => {}, error: () => {} };

export interface Ground {
  readonly redis: TestRedis;
  /** A separate database, because rounds run side by side. */
  readonly db: number;
}

export class Services {
  readonly gateways: SimulatedGateway[] = [];
  readonly workers: SimulatedWorker[] = [];
  /** Connection of the test itself. No step of a round cuts it. */
  readonly admin: Redis;
  readonly #clients: Redis[] = [];
  readonly #all: (SimulatedGateway | SimulatedWorker)[] = [];
  readonly #deliveries: DeliveryQueue;

  readonly #ground: Ground;
  readonly #project: string;
  readonly #history: History;
  readonly #faults: Faults;

  constructor(ground: Ground, project: string, history: History, faults: Faults) {
    this.#ground = ground;
    this.#project = project;
    this.#history = history;
    this.#faults = faults;

    this.admin = this.#connect();
    this.#deliveries = new DeliveryQueue(this.#connect(), silent);
  }

  async start(): Promise<void> {
    for (let n = 0; n < GATEWAYS; n++) this.gateways[n] = this.#newGateway();
    for (let n = 0; n < WORKERS; n++) this.workers[n] = await this.#newWorker();
  }

  gateway(at: number): SimulatedGateway {
    return this.gateways[at % this.gateways.length] as SimulatedGateway;
  }

  worker(at: number): SimulatedWorker {
    return this.workers[at % this.workers.length] as SimulatedWorker;
  }

  /** Kills a gateway, and starts another gateway in its place. */
  replaceGateway(at: number): void {
    this.gateway(at).kill();
    this.gateways[at % this.gateways.length] = this.#newGateway();
  }

  /** Kills a worker, and starts another worker in its place. */
  async replaceWorker(at: number): Promise<void> {
    this.worker(at).kill();
    this.workers[at % this.workers.length] = await this.#newWorker();
  }

  cutConnections(): void {
    for (const client of this.#clients) if (client !== this.admin) client.stream?.destroy();
  }

  /**
   * Resolves when Redis has executed every command that a service has sent, also the commands of killed services and the commands that a client
   * resends after a cut connection. Redis answers a PING after the earlier commands of its connection.
   */
  async executed(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.ping()));
  }

  async close(): Promise<void> {
    for (const one of this.#all) one.kill();
    await this.#deliveries.close();
    await this.admin.flushdb();
    // The clients quit in order, so commands under way are answered, and no connection error reaches a finished caller.
    await Promise.all(this.#clients.map((client) => client.quit().catch(() => client.disconnect())));
  }

  #newGateway(): SimulatedGateway {
    const another = (): SimulatedGateway => this.gateway(0);
    const id = `g${this.#all.length}`;
    const parts = this.#parts((name, reply, sentAt) => gateway.executed(name, reply, sentAt));
    const gateway: SimulatedGateway = new SimulatedGateway(id, this.#project, this.#history, another, parts);
    this.#all.push(gateway);
    return gateway;
  }

  async #newWorker(): Promise<SimulatedWorker> {
    const worker = new SimulatedWorker(`w${this.#all.length}`, this.#project, this.#history, this.#parts());
    this.#all.push(worker);
    await worker.serve();
    return worker;
  }

  #parts(executed?: Parameters<Faults['commands']>[1]) {
    const commands = this.#faults.commands(this.#connect(), executed);
    return { commands, subscriber: this.#faults.subscriber(this.#connect()), deliveries: this.#deliveries, timings };
  }

  #connect(): Redis {
    const { redis, db } = this.#ground;
    const path = redis.socket ? { path: redis.socket } : { port: redis.port };
    const client = new Redis({ ...path, db, maxRetriesPerRequest: null, retryStrategy: () => 10 });
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }
}
