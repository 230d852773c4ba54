// The store's journeys on a real Redis, with a gateway and a worker at once.

import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  DeliveryQueue,
  GatewayStore,
  type NewRun,
  newRunId,
  type RunEvent,
  type RunReader,
  Shares,
  WorkerStore,
} from '../index.ts';

const logger = { warn: () => {}, error: () => {} };
/** Times for a busy machine: no store counts as away, and no worker as dead. */
const timings = { commandMs: 600_000, leaseMs: 600_000 };
let redis: TestRedis;
const clients: Redis[] = [];
const connect = (): Redis => {
  const client = new Redis(redis.url, { maxRetriesPerRequest: null });
  client.on('error', () => {});
  clients.push(client);
  return client;
};
let gateway: GatewayStore;
let worker: WorkerStore;
let deliveries: DeliveryQueue;

beforeAll(async () => {
  redis = await testRedis();
  deliveries = new DeliveryQueue(connect(), logger);
  gateway = new GatewayStore({
    commands: connect(),
    subscriber: connect(),
    shares: new Shares(),
    gatewayId: 'g1',
    deliveries,
    logger,
    timings,
  });
  worker = new WorkerStore({ commands: connect(), subscriber: connect(), workerId: 'w1', deliveries, logger, timings });
  gateway.start();
});

afterAll(async () => {
  gateway.stop();
  worker.close();
  await deliveries.close();
  for (const client of clients) client.disconnect();
  await redis.stop();
});

const call = (more: Partial<NewRun> = {}): NewRun => ({
  project: 'demo',
  runId: newRunId(),
  app: 'hello',
  fn: 'run',
  params: Buffer.from('{"n": 1.0}'),
  promised: false,
  paced: true,
  keepMs: 600_000,
  absentMs: 0,
  queueLimit: 10,
  queueTimeoutMs: 600_000,
  ...more,
});

const collect = (reader: RunReader): Promise<RunEvent[]> =>
  new Promise((resolve, reject) => {
    const events: RunEvent[] = [];
    reader.events().subscribe({ next: (event) => events.push(event), error: reject, complete: () => resolve(events) });
  });
const items = (events: RunEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'items' ? event.batch.blob.toString().split('\n') : []));

test('a call is accepted, taken with its bytes unchanged, streamed live and ended', async () => {
  await worker.serve('demo');
  expect((await worker.take('demo', [{ app: 'hello', slots: 5 }])).runs).toEqual([]);
  const woken = new Promise<string | undefined>((resolve) => {
    worker.onWake = (_, app) => resolve(app);
  });
  const run = call();
  const { accepted, reader } = gateway.acceptor.accept(run, 'items');
  const events = collect(reader as RunReader);
  expect(await accepted).toEqual({ state: 'accepted' });
  expect(await woken).toBe('hello');
  const { runs } = await worker.take('demo', [{ app: 'hello', slots: 5 }]);
  expect(runs).toMatchObject([{ runId: run.runId, fn: 'run', attempt: 1, paced: true }]);
  expect(runs[0]?.params.toString()).toBe('{"n": 1.0}');
  const { token } = runs[0] as { token: string };
  const blob = Buffer.from('a\nb');
  expect(
    await worker.append('demo', { runId: run.runId, token, batch: { first: 1, count: 2, kind: 's', blob } }),
  ).toMatchObject({ state: 'ok' });
  expect(
    await worker.append('demo', {
      runId: run.runId,
      token,
      batch: { first: 3, count: 1, kind: 's', blob: Buffer.from('c') },
    }),
  ).toMatchObject({ state: 'ok' });
  expect(
    await worker.end('demo', {
      runId: run.runId,
      token,
      outcome: { state: 'succeeded', items: 3, streamed: true, runTimeMs: '1.5' },
    }),
  ).toEqual({ state: 'ended' });
  const seen = await events;
  expect(items(seen)).toEqual(['a', 'b', 'c']);
  expect(seen.at(-1)).toMatchObject({ type: 'outcome', outcome: { state: 'succeeded', items: 3, runTimeMs: '1.5' } });
  expect(items(await collect(gateway.read('demo', run.runId, 'items', 1)))).toEqual(['b', 'c']);
  expect(await gateway.lookUp('demo', run.runId)).toMatchObject({ state: 'succeeded', items: 3, app: 'hello' });
});

test('a record names the version that the run was taken for, and at the end the version that executed it', async () => {
  const names = async (executed: { version?: string }): Promise<(string | undefined)[]> => {
    const run = call();
    await gateway.acceptor.accept(run, 'none').accepted;
    const seen = [(await gateway.lookUp('demo', run.runId))?.version];
    const { runs } = await worker.take('demo', [{ app: 'hello', slots: 1, version: 'old' }]);
    seen.push((await gateway.lookUp('demo', run.runId))?.version);
    const { token } = runs[0] as { token: string };
    const outcome = { state: 'succeeded', items: 0, streamed: false, runTimeMs: '1' } as const;
    expect(await worker.end('demo', { runId: run.runId, token, outcome, ...executed })).toEqual({ state: 'ended' });
    seen.push((await gateway.lookUp('demo', run.runId))?.version);
    return seen;
  };
  expect(await names({})).toEqual([undefined, 'old', 'old']);
  expect(await names({ version: 'new' })).toEqual([undefined, 'old', 'new']);
});

test('a queued run whose caller disconnects is cancelled and never starts', async () => {
  const run = call();
  const { accepted, reader } = gateway.acceptor.accept(run, 'outcome');
  await accepted;
  (reader as RunReader).close();
  while ((await gateway.lookUp('demo', run.runId))?.state !== 'cancelled')
    await new Promise((resolve) => setImmediate(resolve));
  expect((await worker.take('demo', [{ app: 'hello', slots: 5 }])).runs).toEqual([]);
});

test('a running run whose caller disconnects is cancelled at its worker', async () => {
  const cancelled = new Promise<string>((resolve) => {
    worker.onCancel = ({ runId }) => resolve(runId);
  });
  const run = call();
  const { accepted, reader } = gateway.acceptor.accept(run, 'items');
  await accepted;
  const { runs } = await worker.take('demo', [{ app: 'hello', slots: 5 }]);
  expect(runs).toHaveLength(1);
  (reader as RunReader).close();
  expect(await cancelled).toBe(run.runId);
  const token = (runs[0] as { token: string }).token;
  expect(await worker.renew('demo', [{ runId: run.runId, token }], ['hello'])).toEqual([
    { state: 'held', position: 0, cancel: true },
  ]);
  await worker.end('demo', {
    runId: run.runId,
    token,
    outcome: {
      state: 'cancelled',
      items: 0,
      streamed: false,
      runTimeMs: '1',
      error: { code: 'cancelled', message: 'x' },
    },
  });
  expect((await gateway.lookUp('demo', run.runId))?.state).toBe('cancelled');
});

test('a reader that pauses costs its cursor and continues from the store without a gap', async () => {
  const run = call();
  const { accepted, reader } = gateway.acceptor.accept(run, 'items');
  await accepted;
  const { runs } = await worker.take('demo', [{ app: 'hello', slots: 5 }]);
  const token = (runs[0] as { token: string }).token;
  const seen: string[] = [];
  const first = new Promise<void>((resolve) => {
    const subscription = (reader as RunReader).events().subscribe((event) => {
      seen.push(...items([event]));
      subscription.unsubscribe();
      resolve();
    });
  });
  const append = (n: number) =>
    worker.append('demo', {
      runId: run.runId,
      token,
      batch: { first: n, count: 1, kind: 's', blob: Buffer.from(`${n}`) },
    });
  await append(1);
  await first;
  await append(2);
  await append(3);
  const rest = collect(reader as RunReader);
  await append(4);
  await worker.end('demo', {
    runId: run.runId,
    token,
    outcome: { state: 'succeeded', items: 4, streamed: true, runTimeMs: '1' },
  });
  expect([...seen, ...items(await rest)]).toEqual(['1', '2', '3', '4']);
});

test('reading an unknown run fails with not_found', async () => {
  await expect(collect(gateway.read('demo', newRunId(), 'items', 0))).rejects.toMatchObject({ code: 'not_found' });
});

test('cancelling an unknown run leaves nothing, and a withdrawn accept is refused when it arrives', async () => {
  const client = connect();
  const keys = async (): Promise<string[]> => (await client.keys('*tombstones*')).sort();
  const before = await keys();
  expect(await gateway.cancel('demo', newRunId())).toBe('unknown');
  expect(await keys()).toEqual(before);
  const late = call();
  await gateway.withdraw('demo', late.runId);
  expect(await gateway.acceptor.accept(late, 'none').accepted).toEqual({ state: 'cancelled' });
});
