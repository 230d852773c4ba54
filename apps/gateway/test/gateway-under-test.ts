// A real gateway on a real port, with a real store on a real Redis, for tests of the contract over HTTP.
import 'reflect-metadata';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import {
  closeRedis,
  connectRedis,
  createLogger,
  OperationsPort,
  readSettings,
  redisReady,
  Shutdown,
  type Tracing,
} from '@inference-proxy/platform';
import { DeliveryQueue, GatewayStore, Maintenance, Shares, WorkerStore } from '@inference-proxy/store';
import { type Answer, open, type RequestOptions, request } from '@inference-proxy/test/client';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { JwtService, type JwtSignOptions } from '@nestjs/jwt';
import { listen } from '../src/gateway.ts';
import { GatewaySettings } from '../src/settings.ts';
import { app, PlayedWorker } from './played-worker.ts';

export const SECRET = 'a key of at least thirty-two characters';
export const PROJECT = 'acme';

export function token(claims: object = {}, options: JwtSignOptions = {}): string {
  return new JwtService({}).sign(
    { sub: 'tester', project_id: PROJECT, ...claims },
    { secret: SECRET, expiresIn: '10m', ...options },
  );
}

/** Longer than any test: for limits that a test does not examine. */
export const NEVER_MS = 600_000;
/** In these tests only the grace ends a stop, also on a busy machine. */
const deadlines = { unready: NEVER_MS, intake: NEVER_MS, drain: NEVER_MS };

interface Parts {
  readonly tracing?: Tracing;
  /** Time to wait for a reply of the store, ms. */
  readonly commandMs?: number;
  /** Time between two rounds in which the store ends runs without a reader, ms. */
  readonly reapMs?: number;
}

const BEARER = `Bearer ${token()}`;
const withBearer = (options: RequestOptions): RequestOptions => ({
  ...options,
  headers: { authorization: BEARER, ...options.headers },
});

/** Number of gateways so far, for their names. */
let started = 0;

/** A gateway, and a worker that the test plays. */
export class GatewayUnderTest {
  readonly #ownsRedis: boolean;

  private constructor(
    readonly port: number,
    readonly worker: PlayedWorker,
    readonly store: GatewayStore,
    readonly lines: readonly Record<string, unknown>[],
    readonly shutdown: Shutdown,
    readonly redis: TestRedis,
    readonly operations: OperationsPort,
    ownsRedis: boolean,
  ) {
    this.#ownsRedis = ownsRedis;
  }

  /**
   * @param env settings of the gateway; a `REDIS_URL` is another address of its Redis
   * @param beside an earlier gateway, whose store the new gateway shares
   */
  static async start(
    env: Record<string, string> = {},
    beside?: GatewayUnderTest,
    { tracing, commandMs = NEVER_MS, reapMs }: Parts = {},
  ): Promise<GatewayUnderTest> {
    const number = ++started;
    const redis = beside?.redis ?? (await testRedis());
    const lines: Record<string, unknown>[] = [];
    const logger = createLogger({
      name: 'gateway',
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    });
    const shutdown = new Shutdown({ logger, deadlines });
    const client = async (name: string) => {
      const connection = connectRedis(env.REDIS_URL ?? redis.url, name, logger);
      shutdown.add('redis', name, () => closeRedis(connection));
      await redisReady(connection);
      return connection;
    };
    const deliveries = new DeliveryQueue(await client('deliveries'), logger);
    const shared = { deliveries, logger };
    const ofGateway = {
      ...{ ...shared, shares: new Shares(), commands: await client('commands') },
      // After a long pause between two reaps, every lease gets a fresh term of this length.
      timings: { leaseMs: NEVER_MS, commandMs, ...(reapMs !== undefined && { reapMs }) },
    };
    const store = new GatewayStore({
      ...ofGateway,
      subscriber: await client('subscriber'),
      gatewayId: `g${number}`,
    });
    const maintenance = new Maintenance(ofGateway);
    store.start();
    maintenance.start();
    const workerStore = new WorkerStore({
      ...shared,
      commands: await client('worker'),
      subscriber: await client('worker-subscriber'),
      workerId: `w${number}`,
      // A played worker renews no lease.
      timings: { leaseMs: NEVER_MS, commandMs: NEVER_MS },
      ...(env.STREAM_WINDOW_BYTES !== undefined && { windowBytes: Number(env.STREAM_WINDOW_BYTES) }),
    });
    const worker = new PlayedWorker(workerStore, PROJECT);
    // A gateway beside an earlier gateway has no worker, because the earlier gateway's worker takes all runs.
    if (!beside) await worker.start(app());
    shutdown.add('flush', 'stores', async () => {
      maintenance.stop();
      store.stop();
      workerStore.close();
      await deliveries.close();
    });
    const settings = new GatewaySettings(
      readSettings(GatewaySettings.schema, {
        REDIS_URL: redis.url,
        PORT: '0',
        JWT_SECRET: SECRET,
        SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
        ...env,
      }),
    );
    const operations = new OperationsPort(() => shutdown.stopping);
    const port = await listen({ settings, logger, shutdown, operations, tracing }, store);
    return new GatewayUnderTest(port, worker, store, lines, shutdown, redis, operations, beside === undefined);
  }

  async stop(): Promise<void> {
    await this.shutdown.stop('the test has ended');
    if (this.#ownsRedis) await this.redis.stop();
  }

  /** Sends a request. Resolves with its answer as soon as the head has arrived. */
  open(path: string, options: RequestOptions = {}): Promise<IncomingMessage> {
    return open(this.port, path, withBearer(options));
  }

  request(path: string, options: RequestOptions = {}): Promise<Answer> {
    return request(this.port, path, withBearer(options));
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.request(path, { method: 'GET', headers });
  }

  /** Calls `chat/run`. */
  call(
    options: { query?: string; body?: string | Buffer; headers?: Record<string, string | string[]> } = {},
  ): Promise<Answer> {
    return this.request(`/v4/${PROJECT}/chat/run${options.query ?? ''}`, {
      body: options.body ?? '{"text":"hello"}',
      headers: options.headers ?? {},
    });
  }

  /** Calls `chat/run` for a stream. The answer begins with the first item. */
  stream(headers: Record<string, string> = {}): Promise<IncomingMessage> {
    return this.open(`/v4/${PROJECT}/chat/run`, { body: '{}', headers: { accept: 'text/event-stream', ...headers } });
  }

  /** Opens a connection for raw bytes. */
  socket(): Socket {
    return connect({ port: this.port, host: '127.0.0.1' });
  }
}
