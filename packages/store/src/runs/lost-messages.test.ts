// Live messages (pub/sub) may be lost, and the store has the truth: readers of one gateway whose messages were lost.
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { DeliveryQueue, GatewayStore, type NewRun, newRunId, type RunReader, Shares, WorkerStore } from '../index.ts';
import { Faults } from '../property/faults.ts';

const logger = { warn: () => {}, error: () => {} };
/** Times for a busy machine: no store counts as away, and no worker as dead. */
const timings = { commandMs: 600_000, leaseMs: 600_000 };
const faults = new Faults(new Map());
const clients: Redis[] = [];
let redis: TestRedis;
let deliveries: DeliveryQueue;
let gateway: GatewayStore;
let worker: WorkerStore;

const connect = (): Redis => {
  const client = new Redis(redis.socket ?? String(redis.port), { maxRetriesPerRequest: null });
  clients.push(client);
  return client;
};

beforeAll(async () => {
  redis = await testRedis();
  deliveries = new DeliveryQueue(connect(), logger);
  const subscriber = faults.subscriber(connect());
  // No attend runs. A reader gets a lost message only through other readers of its gateway.
  gateway = new GatewayStore({
    commands: connect(),
    subscriber,
    shares: new Shares(),
    gatewayId: 'g1',
    deliveries,
    logger,
    timings,
  });
  worker = new WorkerStore({ commands: connect(), subscriber: connect(), workerId: 'w1', deliveries, logger, timings });
});

afterAll(async () => {
  gateway.stop();
  worker.close();
  await deliveries.close();
  for (const client of clients) client.disconnect();
  await redis.stop();
});

const call = (): NewRun => ({
  project: 'demo',
  runId: newRunId(),
  app: 'hello',
  fn: 'run',
  params: Buffer.from('{}'),
  promised: false,
  paced: true,
  keepMs: 600_000,
  queueLimit: 10,
  queueTimeoutMs: 600_000,
});

test('a reader that lost the message of the end gets the end when another reader of its gateway reads it', async () => {
  const run = call();
  const { accepted, reader } = gateway.acceptor.accept(run, 'outcome');
  const outcome = (reader as RunReader).outcome();
  await accepted;
  const [taken] = (await worker.take('demo', [{ app: 'hello', slots: 1 }])).runs;
  faults.swallowMessages(1, 'ends');
  const { runId, token } = taken as { runId: string; token: string };
  await worker.end('demo', { runId, token, outcome: { state: 'succeeded', items: 0, streamed: true, runTimeMs: '1' } });
  expect((await gateway.read('demo', run.runId, 'outcome', 0).outcome()).state).toBe('succeeded');
  expect((await outcome).state).toBe('succeeded');
});

test('a reader that lost the message of the head gets the head from the store, before any item', async () => {
  const run = call();
  const { accepted, reader } = gateway.acceptor.accept(run, 'answer');
  const seen: string[] = [];
  const over = new Promise<void>((complete, error) => {
    (reader as RunReader).events().subscribe({ next: ({ type }) => seen.push(type), error, complete });
  });
  await accepted;
  const [taken] = (await worker.take('demo', [{ app: 'hello', slots: 1 }])).runs;
  const { runId, token } = taken as { runId: string; token: string };
  const head = { status: 200, headers: [], form: 'ndjson' } as const;
  faults.swallowMessages(1, 'all');
  await worker.head('demo', { runId, token, head });
  await worker.append('demo', { runId, token, batch: { first: 1, count: 1, kind: 'j', blob: Buffer.from('1') } });
  const outcome = { state: 'succeeded', items: 1, streamed: true, runTimeMs: '1', head } as const;
  await worker.end('demo', { runId, token, outcome });
  await over;
  expect(seen).toEqual(['head', 'items', 'outcome']);
});

test('log lines of a lost message are read at the next attend, without waiting for the next line', async () => {
  const attending = new GatewayStore({
    commands: connect(),
    subscriber: faults.subscriber(connect()),
    shares: new Shares(),
    gatewayId: 'g2',
    deliveries,
    logger,
    timings: { ...timings, attendMs: 20 },
  });
  const run = call();
  await attending.acceptor.accept(run, 'none').accepted;
  const [taken] = (await worker.take('demo', [{ app: 'hello', slots: 1 }])).runs;
  const { runId, token } = taken as { runId: string; token: string };
  const texts: string[] = [];
  const line = Promise.withResolvers<void>();
  const lost = Promise.withResolvers<void>();
  attending
    .read('demo', runId, 'logs', 0)
    .events()
    .subscribe((event) => {
      if (event.type !== 'log') return;
      texts.push(event.line.text);
      (texts.length === 1 ? line : lost).resolve();
    });
  const print = (text: string) =>
    worker.log('demo', { runId, token, lines: [{ at: Date.now(), stream: 'stdout', text }] });
  await print('sent');
  await line.promise;
  faults.swallowMessages(1, 'all');
  await print('lost');
  attending.start();
  await lost.promise;
  expect(texts).toEqual(['sent', 'lost']);
  attending.stop();
});
