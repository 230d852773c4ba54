// Contract 6: the store passes `traceparent` from the call to the worker and to the delivery.
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  DeliveryQueue,
  DeliveryStore,
  defaultTimings,
  GatewayStore,
  type NewRun,
  newRunId,
  Shares,
  type TakenRun,
  WorkerStore,
} from '../index.ts';

const logger = { warn: () => {}, error: () => {} };
/** Times for a busy machine: no store counts as away, and no worker as dead. */
const timings = { commandMs: 600_000, leaseMs: 600_000 };
const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const url = 'https://example.com/hook';

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
});

afterAll(async () => {
  gateway.stop();
  worker.close();
  await deliveries.close();
  for (const client of clients) client.disconnect();
  await redis.stop();
});

async function taken(more: Partial<NewRun>): Promise<TakenRun> {
  const run: NewRun = {
    project: 'demo',
    runId: newRunId(),
    app: 'hello',
    fn: 'run',
    params: Buffer.from('{}'),
    promised: true,
    paced: false,
    keepMs: 600_000,
    queueLimit: 10,
    queueTimeoutMs: 600_000,
    ...more,
  };
  expect(await gateway.acceptor.accept(run, 'none').accepted).toEqual({ state: 'accepted' });
  const { runs } = await worker.take('demo', [{ app: 'hello', slots: 1 }]);
  return runs[0] as TakenRun;
}

const end = ({ runId, token }: TakenRun) =>
  worker.end('demo', { runId, token, outcome: { state: 'succeeded', items: 0, streamed: false, runTimeMs: '1' } });

async function task(runId: string) {
  const begun = await new DeliveryStore(connect(), { ...defaultTimings, ...timings }).begin(
    { project: 'demo', runId, attempt: 1 },
    600_000,
  );
  if (begun.state !== 'begun') throw new Error(`the delivery has not begun: ${begun.state}`);
  return begun.task;
}

test('the worker and the delivery get the trace context of the call, and the delivery gets the number of takes', async () => {
  const run = await taken({ traceparent, webhook: { url } });
  expect(run).toMatchObject({ traceparent, promised: true, paced: false });
  await end(run);
  expect(await task(run.runId)).toMatchObject({ traceparent, runAttempt: 1 });
});

test('a call without a traceparent leaves none in the record', async () => {
  const run = await taken({ webhook: { url } });
  expect(run).not.toHaveProperty('traceparent');
  await end(run);
  expect(await task(run.runId)).not.toHaveProperty('traceparent');
});

test('a run keeps its traceparent after its caller got a 202 answer', async () => {
  const run = await taken({ traceparent, absentMs: 0, webhook: { url } });
  await gateway.detach('demo', run.runId);
  await end(run);
  expect(await task(run.runId)).toMatchObject({ traceparent });
});
