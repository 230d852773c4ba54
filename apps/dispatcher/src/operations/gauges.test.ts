// Contract 6: the gauges of waiting deliveries and open circuits in `/metrics`.
import { createLogger, Registry } from '@inference-proxy/platform';
import { DeliveryQueue, HostStore } from '@inference-proxy/store';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { gaugeDepths } from './gauges.ts';

const project = 'demo';
const host = 'dead.test:443';

let redis: TestRedis;
let client: Redis;
let queue: DeliveryQueue;
let hosts: HostStore;
beforeAll(async () => {
  redis = await testRedis();
  client = new Redis(redis.socket ?? String(redis.port));
  client.on('error', () => {});
  queue = new DeliveryQueue(client, createLogger({ name: 'test', level: 'silent' }));
  hosts = new HostStore(client, {
    leaseMs: 600_000,
    perProject: 1,
    perHost: 2,
    project: 9,

    probeMs: 600_000,
    commandMs: 60_000,
  });
});
afterAll(async () => {
  await queue.close();
  client.disconnect();
  await redis.stop();
});

const due = (runId: string) => ({ project, runId, attempt: 1 });

/** Returns the samples of `/metrics` without comments. */
async function gauges(depths: Parameters<typeof gaugeDepths>[1]): Promise<Record<string, string>> {
  const registry = new Registry();
  gaugeDepths(registry, depths);
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => line.split(/ (?=\S+$)/, 2)));
}

test('the gauges report open circuits, parked deliveries, jobs by state and the age of the oldest job', async () => {
  hosts.onWoken(() => {});
  for (let at = 0; at < 20; at += 1) {
    const entered = await hosts.acquire(due(`r${at}`), host, 'normal', 0);
    if (entered.state === 'open') await hosts.release(entered.slot, 'bad', 0);
  }
  for (const runId of ['p1', 'p2']) {
    expect(await hosts.acquire(due(runId), host, 'normal', 0)).toEqual({ state: 'parked', reason: 'circuit_open' });
  }
  await queue.add(due('now'), 0);
  await queue.add(due('later'), 600_000);
  const samples = await gauges({
    backlogMs: () => queue.backlogMs(),
    counts: () => queue.counts(),
    receivers: () => hosts.counts(),
  });
  expect(samples).toMatchObject({
    inference_proxy_open_circuits: '1',
    inference_proxy_parked_deliveries: '2',
    'inference_proxy_delivery_jobs{state="waiting"}': '1',
    'inference_proxy_delivery_jobs{state="delayed"}': '1',
  });
  expect(Number(samples.inference_proxy_delivery_backlog_age_seconds)).toBeGreaterThanOrEqual(0);
});

test('while Redis is away the gauges have no value, and the scrape succeeds', async () => {
  const away = () => Promise.reject(new Error('Redis is away'));
  expect(await gauges({ backlogMs: away, counts: away, receivers: away })).toEqual({
    inference_proxy_delivery_backlog_age_seconds: 'Nan',
    inference_proxy_open_circuits: 'Nan',
    inference_proxy_parked_deliveries: 'Nan',
  });
});
