// Kill anything: two gateways, three workers, two dispatchers and a Redis that writes, under every kind of call, while one thing after the other goes
// wrong. Whatever happens, what was accepted has one end, every reader each item once, every due webhook its delivery, and nothing is left.

import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { type Receiver, receiver } from '../receiver/receivers.ts';
import { type KillablePart, startTestStack, type TestStack } from '../stack/test-stack.ts';
import { faultsOf } from './checker.ts';
import type { Delivered, Told, Trouble } from './history.ts';
import { Load } from './load.ts';

jest.setTimeout(240_000);

const SECRET = 'the receiver’s own';
/** Longer than a lease, so that what is frozen that long is believed dead. */
const FROZEN_MS = 6000;
const REDIS_STOPPED_MS = 8000;
const BETWEEN_MS = 1000;

let stack: TestStack;
let hook: Receiver;
let load: Load;
let redis: Redis;
const delivered: Delivered[] = [];
const troubles: Trouble[] = [];

const isSigned = (headers: Record<string, unknown>, body: Buffer): boolean => {
  const signed = createHmac('sha256', Buffer.from(SECRET, 'utf8'))
    .update(`${headers['x-request-id']}.${headers['x-service-webhook-timestamp']}.`)
    .update(body)
    .digest('hex');
  return headers['x-service-webhook-signature'] === `v1,${signed}`;
};

beforeAll(async () => {
  hook = await receiver(({ headers, body }) => {
    delivered.push({
      runId: String(headers['x-request-id']),
      webhookId: String(headers['webhook-id']),
      body: body.toString(),
      verified: isSigned(headers, body),
    });
    return { status: 200 };
  });
  stack = await startTestStack({
    scale: { gateway: 2, worker: 3, dispatcher: 2 },
    env: {
      WORKER_APPS: 'demo/steady',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      LEASE_MS: '3000',
      LEASE_RENEW_MS: '1000',
      ATTEND_MS: '1000',
    },
  });
  redis = new Redis(stack.redisUrl.replace('redis+unix://', ''), { maxRetriesPerRequest: null });
  redis.on('error', () => {});
  const caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('steady');
  await mkdir(join(stack.marksDir, 'entered'));
  const webhook = { url: hook.url, secret: Buffer.from(SECRET, 'utf8').toString('latin1') };
  load = new Load({ caller, webhook, marks: join(stack.marksDir, 'entered') });
  await load.succeeds(3);
});
afterAll(async () => {
  redis?.disconnect();
  await stack?.stop();
  await hook?.close();
});

const frozen = async (part: KillablePart, ms: number): Promise<void> => {
  stack.pause(part);
  await sleep(ms);
  stack.resume(part);
};

/** The processes that a worker has started. */
const replicasOf = (part: KillablePart): number[] =>
  execFileSync('pgrep', ['-P', String(stack.pid(part))])
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);

const faults: Record<string, () => Promise<unknown>> = {
  'a gateway is killed': () => stack.kill('gateway-1'),
  'a worker is killed': () => stack.kill('worker-1'),
  'a dispatcher is killed': () => stack.kill('dispatcher-1'),
  'functions’ processes are killed': async () => {
    for (const pid of replicasOf('worker-2')) process.kill(pid, 'SIGKILL');
  },
  'a gateway is told to stop': () => stack.kill('gateway-2', 'SIGTERM'),
  'a worker is told to stop': () => stack.kill('worker-2', 'SIGTERM'),
  'a dispatcher is told to stop': () => stack.kill('dispatcher-2', 'SIGTERM'),
  'Redis is killed': () => stack.kill('redis'),
  'Redis stands still': () => frozen('redis', REDIS_STOPPED_MS),
  'Redis forgets its scripts': () => redis.script('FLUSH'),
  'Redis cuts all who listen': () => redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub'),
  'Redis cuts all who ask': () => redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
  'a worker is frozen, and wakes up late': () => frozen('worker-3', FROZEN_MS),
  'a gateway is frozen, and wakes up late': () => frozen('gateway-1', FROZEN_MS),
  'a dispatcher is frozen, and wakes up late': () => frozen('dispatcher-1', FROZEN_MS),
};

test.each(Object.keys(faults))('%s: service returns by itself', async (name) => {
  const from = performance.now();
  await faults[name]?.();
  await load.succeeds(2);
  troubles.push({ from, to: performance.now() });
  await sleep(BETWEEN_MS);
});

test('all are restarted, one after the other: not one call fails', async () => {
  for (const part of [
    'gateway-1',
    'gateway-2',
    'worker-1',
    'worker-2',
    'worker-3',
    'dispatcher-1',
    'dispatcher-2',
  ] as const)
    await stack.restart(part);
  await load.succeeds(2);
});

/** What is under way in the store: nothing, when all has ended. */
async function left(): Promise<string[]> {
  const prefix = 'ip:{demo}:';
  const found: string[] = [];
  for (const name of ['leases', 'due', 'absent']) {
    const count = await redis.zcard(prefix + name);
    if (count > 0) found.push(`${name}: ${count}`);
  }
  for (const key of await redis.keys(`${prefix}queue:*`)) found.push(key);
  for (const key of await redis.keys(`${prefix}following:*`)) found.push(`${key}: ${await redis.scard(key)}`);
  return found;
}

test('all that was accepted has one end, all that was read is whole, all that is due has come, and nothing is left', async () => {
  await load.stop();
  const { seen } = load;
  const promised = seen.flatMap(({ kind, is, runId }) => (kind === 'promised' && is === 'ok' ? [String(runId)] : []));
  const arrived = (): boolean => {
    const came = new Set(delivered.map(({ runId }) => runId));
    return promised.every((runId) => came.has(runId));
  };
  // What does not come shows in the history.
  await until(arrived).catch(() => {});
  await until(async () => (await left()).length === 0).catch(() => {});
  const kept = seen.flatMap(({ kind, is, runId }) =>
    runId !== undefined && is !== 'unavailable' && ['promised', 'resumed', 'retried'].includes(kind) ? [runId] : [],
  );
  const callers = stack.gatewayPorts().map((port) => new Caller(port, stack.jwtSecret));
  const told: Told[][] = [];
  for (const runId of new Set(kept)) {
    const each = await Promise.all(callers.map((caller) => caller.lookUp(runId)));
    told.push(each.map(({ status, result }) => ({ runId, status, result })));
  }
  const marks = join(stack.marksDir, 'entered');
  const entered = new Map<string, number>();
  for (const tag of await readdir(marks)) entered.set(tag, (await readFile(join(marks, tag))).length);
  const found = faultsOf({ seen, delivered, told, entered, troubles, left: await left() });
  expect(found).toEqual([]);
  expect(seen.filter(({ is }) => is === 'ok').length).toBeGreaterThan(seen.length / 2);
});
