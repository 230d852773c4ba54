// Contract 4 on real parts: a run that ends in Redis, the dispatcher's module, receivers.
import { setTimeout as sleep } from 'node:timers/promises';
import { SealedBox } from '@inference-proxy/crypto';
import { createLogger, nestContext, OperationsPort, readSettings, Shutdown } from '@inference-proxy/platform';
import {
  DeliveryQueue,
  DeliveryStore,
  defaultTimings,
  GatewayStore,
  newRunId,
  type StoreTimings,
  WorkerStore,
} from '@inference-proxy/store';
import { rawReceiver, receiver } from '@inference-proxy/test/receiver';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Webhook } from 'standardwebhooks';
import { DeliveryWorker } from './deliveries/queue.ts';
import { dispatcherModule } from './dispatcher.module.ts';
import { HostWatch } from './fairness/host-watch.ts';
import { DispatcherSettings } from './settings.ts';

const project = 'demo';
const key = Buffer.alloc(32, 3);
const box = new SealedBox([key]);
const secret = 'whsec_aGVsbG8gd29ybGQ=';
const quiet = createLogger({ name: 'test', level: 'silent' });
const timings: StoreTimings = { ...defaultTimings, reapMs: 200, handoverMs: 500 };

let redis: TestRedis;
let deliveries: DeliveryQueue;
let gateway: GatewayStore;
let worker: WorkerStore;
const clients: Redis[] = [];
const connect = (): Redis => {
  const client = new Redis(redis.url, { maxRetriesPerRequest: null });
  client.on('error', () => {});
  clients.push(client);
  return client;
};

beforeAll(async () => {
  redis = await testRedis();
  deliveries = new DeliveryQueue(connect(), quiet);
  const shared = { deliveries, logger: quiet, timings };
  gateway = new GatewayStore({ commands: connect(), subscriber: connect(), gatewayId: 'g1', ...shared });
  worker = new WorkerStore({ commands: connect(), subscriber: connect(), workerId: 'w1', ...shared });
  gateway.start();
  await worker.serve(project);
}, 60_000);

afterAll(async () => {
  gateway.stop();
  worker.close();
  await deliveries.close();
  for (const client of clients) client.disconnect();
  await redis.stop();
});

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function dispatcher(env: Record<string, string> = {}): Promise<Shutdown> {
  const settings = new DispatcherSettings(
    readSettings(DispatcherSettings.schema, {
      REDIS_URL: redis.url.replace(/^unix:/, 'redis+unix:'),
      SECRETS_KEY: key.toString('base64'),
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      WEBHOOK_TIMEOUT_S: '1',
      WEBHOOK_RECORD_S: '1',
      WEBHOOK_SCHEDULE: '0,0.05,0.05',
      ...env,
    }),
  );
  const shutdown = new Shutdown({ logger: quiet });
  const boot = { settings, logger: quiet, shutdown, operations: new OperationsPort(), tracing: undefined };
  const context = await nestContext(dispatcherModule(boot), boot);
  context.get(HostWatch).start();
  context.get(DeliveryWorker).start();
  cleanups.push(() => shutdown.stop('the test is over'));
  return shutdown;
}

/** A run that succeeds with `result` and whose envelope goes to `url`. */
async function runTo(url: string, result = '{"n":1.0}'): Promise<string> {
  const runId = newRunId();
  const { accepted } = gateway.accept(
    {
      project,
      runId,
      app: 'hello',
      fn: 'run',
      params: Buffer.from('{}'),
      promised: true,
      paced: false,
      keepMs: 60_000,
      queueLimit: 1000,
      queueTimeoutMs: 60_000,
      webhook: { url, secret: box.seal(Buffer.from(secret), runId) },
    },
    'outcome',
  );
  await accepted;
  const { runs } = await worker.take(project, [{ app: 'hello', slots: 1 }]);
  const { token } = runs[0] as { token: string };
  const outcome = {
    state: 'succeeded',
    items: 0,
    streamed: false,
    result: Buffer.from(result),
    runTimeMs: '1.5',
  } as const;
  await worker.end(project, { runId, token, outcome });
  return runId;
}

/** Resolves when the condition holds. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}
const delivered = (runId: string): Promise<string> =>
  new DeliveryStore(connect(), timings).begin({ project, runId, attempt: 99 }, 1).then(({ state }) => state);

test('a run that ends with a webhook is delivered, its bytes as they were, signed both ways', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  await dispatcher();
  const runId = await runTo(sink.url);
  await until(() => sink.requests.length === 1);
  const [request] = sink.requests;
  const text = request?.body.toString() ?? '';
  expect(text).toMatch(
    new RegExp(`^{"run_id":"${runId}","status":"succeeded","result":{"n":1.0},"run_time_ms":1.5,"timestamp":"`),
  );
  new Webhook(secret).verify(text, request?.headers as Record<string, string>);
  await until(async () => (await delivered(runId)) === 'settled');
}, 20_000);

test('a failing receiver gets the same bytes again by the schedule, until it takes them', async () => {
  const sink = await receiver((_, count) => ({ status: count < 3 ? 503 : 200 }));
  cleanups.push(() => sink.close());
  await dispatcher();
  const runId = await runTo(sink.url);
  await until(() => sink.requests.length === 3);
  expect(new Set(sink.requests.map(({ body }) => body.toString())).size).toBe(1);
  expect(new Set(sink.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  await until(async () => (await delivered(runId)) === 'settled');
}, 20_000);

test('receivers that hang do not delay others', async () => {
  const hanging = await rawReceiver(() => {});
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(
    () => hanging.close(),
    () => sink.close(),
  );
  await dispatcher({ WEBHOOK_TIMEOUT_S: '3', WEBHOOK_CONCURRENCY: '40', WEBHOOK_HOST_CONCURRENCY: '16' });
  for (let i = 0; i < 39; i += 1) await runTo(hanging.url);
  const begun = performance.now();
  for (let i = 0; i < 20; i += 1) await runTo(sink.url);
  await until(() => sink.requests.length === 20);
  expect(performance.now() - begun).toBeLessThan(2500);
}, 20_000);

test('told to stop, it takes no more, lets attempts under way end and records them', async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const slow = await rawReceiver((socket) => {
    socket.once('data', async () => {
      asked.resolve();
      await answer.promise;
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
  });
  cleanups.push(() => slow.close());
  const shutdown = await dispatcher();
  const runId = await runTo(slow.url);
  await asked.promise;
  const stopped = shutdown.stop('the test says so');
  answer.resolve();
  expect(await stopped).toBe(true);
  expect(await delivered(runId)).toBe('settled');
}, 20_000);

test('an attempt whose dispatcher died between POST and record is made again when its lease has run out', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  const runId = await runTo(sink.url);
  // What a dispatcher that is killed after its POST leaves behind: an attempt begun, never recorded, its job gone with it.
  expect(await new DeliveryStore(connect(), timings).begin({ project, runId, attempt: 1 }, 500)).toMatchObject({
    state: 'begun',
  });
  await dispatcher();
  await until(() => sink.requests.length > 0);
  await until(async () => (await delivered(runId)) === 'settled');
}, 20_000);

test('Redis away and back: what is due is delivered', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  await dispatcher();
  redis.pause();
  await sleep(1000);
  redis.resume();
  await runTo(sink.url);
  await until(() => sink.requests.length === 1);
}, 20_000);
