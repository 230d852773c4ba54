// docs/operations/failures.md, "What is safe when": its tables, cell by cell. Redis is killed by SIGKILL right after a 202, after a read item
// and after an acknowledged delivery. The death of a machine is the death of Redis and the loss of every write that was not on the disk.
import { mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { redisAddress } from '@inference-proxy/platform';
import { freePort } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Caller } from '../client/caller.ts';
import { openingEvent } from '../client/streams.ts';
import { until } from '../client/until.ts';
import { type Receiver, receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { appendOnlyFileIn } from './disk.ts';
import { flushed } from './flushed.ts';
import { SHORT_TIMES } from './place.ts';
import { rewritten } from './rewritten.ts';

interface Delivery {
  readonly runId: string;
  readonly webhookId: string;
  readonly body: string;
}

let stack: TestStack;
let redisDir: string;
let redis: Redis;
let caller: Caller;
let hook: Receiver;
const delivered: Delivery[] = [];
/** Runs before the receiver answers. */
let beforeAnswer: () => Promise<unknown> = async () => {};
let gates = 0;

async function begin(args: readonly string[]): Promise<void> {
  redisDir = await mkdtemp(join(tmpdir(), 'durable-'));
  hook = await receiver(
    ({ headers, body }) => {
      const [runId, webhookId] = [headers['x-request-id'], headers['webhook-id']].map(String) as [string, string];
      delivered.push({ runId, webhookId, body: body.toString() });
      return { status: 200 };
    },
    () => beforeAnswer(),
  );
  const port = await freePort();
  stack = await startTestStack({
    redis: { args, port },
    redisDir,
    env: {
      ...SHORT_TIMES,
      WORKER_APPS: 'demo/streams',
      WEBHOOK_SCHEDULE: '0,1,1,1,1,1',
      WEBHOOK_JITTER: '0',
      WEBHOOK_TIMEOUT_S: '5',
      WEBHOOK_RECORD_S: '2',
    },
  });
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('streams');
  // The first call of a project writes keys that later calls do not write.
  expect((await caller.call('streams/value', { value: 1 })).status).toBe(200);
  redis = new Redis({ ...redisAddress(stack.redisUrl), maxRetriesPerRequest: null });
  redis.on('error', () => {});
  await rewritten(redis);
}

async function end(): Promise<void> {
  redis?.disconnect();
  await stack?.stop();
  await hook?.close();
  await rm(redisDir, { recursive: true, force: true });
}

const sizeOfFile = async (): Promise<number> => (await stat(await appendOnlyFileIn(redisDir))).size;

/** Kills the process. Resolves when calls succeed again, and Redis has replaced its file. */
async function died(): Promise<void> {
  await stack.kill('redis');
  await works();
  await rewritten(redis);
}

/** Kills the process while no slow flush is under way, as the table assumes. */
async function killed(): Promise<void> {
  await flushed(redis);
  await died();
}

/** Kills the machine: only the flushed part of the file survives. Resolves when calls succeed again. */
async function killedWith(bytes: number): Promise<void> {
  stack.pause('redis');
  await truncate(await appendOnlyFileIn(redisDir), bytes);
  await died();
}

const gate = (): string => join(stack.marksDir, `gate-${++gates}`);
const hooked = (): string => `webhookEndpoint=${encodeURIComponent(hook.url)}`;
const deliveriesOf = (runId: string): Delivery[] => delivered.filter((one) => one.runId === runId);
const statusOf = async (runId: string): Promise<number> =>
  (await caller.request(`/v4/demo/runs/${runId}`, { method: 'GET' })).status;

/** Starts a run that is accepted with a 202 and ends when its gate opens. */
async function promised(opened: string): Promise<string> {
  const query = `?async=true&${hooked()}`;
  const { status, text } = await caller.call(
    'streams/waits',
    { gate: opened, started: `${opened}.started` },
    { query },
  );
  expect(status).toBe(202);
  return (JSON.parse(text) as { run_id: string }).run_id;
}

/** Starts a run whose delivery is acknowledged. @param acknowledging called while the receiver has the delivery and has not answered */
async function acknowledged(acknowledging: () => Promise<unknown> = async () => {}): Promise<string> {
  const answered = Promise.withResolvers<void>();
  beforeAnswer = async () => {
    await acknowledging();
    beforeAnswer = async () => {};
    setImmediate(answered.resolve);
  };
  const opened = gate();
  await writeFile(opened, '');
  const runId = await promised(opened);
  await answered.promise;
  return runId;
}

/** Resolves when calls succeed again. */
const works = (): Promise<true> =>
  until(async () => {
    const answer = await caller.call('streams/value', { value: 1 }).catch(() => undefined);
    return answer?.status === 200;
  });

/** Checks that a delivery never has two bodies or two ids. */
function expectOneDelivery(runId: string): void {
  const [first, ...more] = deliveriesOf(runId);
  expect(first).toBeDefined();
  for (const again of more) expect(again).toEqual(first);
}

describe.each(['always', 'everysec', 'no'])('appendfsync %s, and Redis is killed', (appendfsync) => {
  beforeAll(() => begin(['--appendfsync', appendfsync]));
  afterAll(end);

  test('right after a 202: the run is executed and its webhook delivered', async () => {
    const opened = gate();
    const runId = await promised(opened);
    await killed();
    await writeFile(opened, '');
    expect(await caller.ended(runId)).toMatchObject({ status: 'succeeded', result: 'waited' });
    await until(() => deliveriesOf(runId).length > 0);
    expectOneDelivery(runId);
  });

  test('after an item was read: the run continues, and a returning reader receives every item once', async () => {
    const folder = stack.marksDir;
    const items = 3;
    await writeFile(join(folder, '0'), '');
    const query = '?ids=true&onDisconnect=continue';
    const { runId, events } = await caller.stream('streams/gated', { folder, n: items }, { query });
    expect(await events.next()).toBe(openingEvent(0));
    expect(await events.next()).toBe('id: 1\ndata: item 0');
    await killed();
    for (const item of [1, 2]) await writeFile(join(folder, String(item)), '');
    expect(await caller.ended(runId)).toMatchObject({ status: 'succeeded', items });
    const again = await caller.takeUp(runId, 1);
    expect(await again.events.rest()).toEqual(['id: 2\ndata: item 1', 'id: 3\ndata: item 2']);
    events.leave();
  });

  test('after a delivery was acknowledged: the delivery is settled, or sent again with the same bytes', async () => {
    const runId = await acknowledged();
    await killed();
    await until(async () => (await caller.lookUp(runId)).webhook?.state === 'delivered');
    expectOneDelivery(runId);
  });
});

describe('appendfsync everysec, and the machine dies with unflushed writes', () => {
  beforeAll(() => begin([]));
  afterAll(end);

  test('right after a 202: the run may be lost; then its look-up is 404, and no delivery is sent', async () => {
    const before = await sizeOfFile();
    const opened = gate();
    const runId = await promised(opened);
    await killedWith(before);
    await writeFile(opened, '');
    expect(await statusOf(runId)).toBe(404);
    expect(deliveriesOf(runId)).toEqual([]);
  });

  test('after an item was read: the reader receives an error, and no item of another execution', async () => {
    const before = await sizeOfFile();
    const opened = gate();
    const { runId, events } = await caller.stream(
      'streams/tidy',
      { mark: opened },
      { query: '?onDisconnect=continue' },
    );
    expect(await events.next()).toBe('data: begun');
    await killedWith(before);
    const rest = (await events.rest()).filter((event) => event !== ': keep-alive');
    expect(rest).toEqual([expect.stringMatching(/^event: error\ndata: .*"unavailable"/)]);
    expect(await statusOf(runId)).toBe(404);
  });

  test('after a delivery was acknowledged: the same bytes are sent again with the same webhook-id', async () => {
    let size = 0;
    const runId = await acknowledged(async () => {
      size = await sizeOfFile();
    });
    await until(async () => (await caller.lookUp(runId)).webhook?.state === 'delivered');
    await killedWith(size);
    await until(() => deliveriesOf(runId).length > 1);
    await until(async () => (await caller.lookUp(runId)).webhook?.state === 'delivered');
    expectOneDelivery(runId);
  });
});

describe('without a file (appendonly no), and Redis is killed', () => {
  beforeAll(() => begin(['--appendonly', 'no']));
  afterAll(end);

  test('right after a 202: the run is lost; its look-up is 404, and new calls are served', async () => {
    const opened = gate();
    const runId = await promised(opened);
    await killed();
    await writeFile(opened, '');
    expect(await statusOf(runId)).toBe(404);
    expect(deliveriesOf(runId)).toEqual([]);
  });

  test('after an item was read: the reader receives an error', async () => {
    const { events } = await caller.stream('streams/tidy', { mark: gate() }, { query: '?onDisconnect=continue' });
    expect(await events.next()).toBe('data: begun');
    await killed();
    const rest = (await events.rest()).filter((event) => event !== ': keep-alive');
    expect(rest).toEqual([expect.stringMatching(/^event: error\ndata: .*"unavailable"/)]);
  });

  test('after a delivery was acknowledged: its run is unknown, and no other body is sent', async () => {
    const runId = await acknowledged();
    await killed();
    expectOneDelivery(runId);
    expect(await statusOf(runId)).toBe(404);
  });
});
