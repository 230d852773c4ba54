// Contract 4: no delivery is lost if a dispatcher dies, or if Redis stops or rejects writes, over the whole stack.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { redisAddress } from '@inference-proxy/platform';
import { alive, developmentSecrets, projectRoot } from '@inference-proxy/supervisor';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Caller } from '../../client/caller.ts';
import { until } from '../../client/until.ts';
import { type Receiver, rawReceiver, receiver } from '../../receiver/receivers.ts';
import type { TestStack } from '../../stack/test-stack.ts';
import { hostileStack, settled, to } from './receiving.ts';

// An attempt's lease is the sum of its limits. The tests wait that long for the attempts of a killed dispatcher, so the limits are short.
const env = {
  WEBHOOK_SCHEDULE: '0,1,1,1,1,1,1,1',
  WEBHOOK_CONNECT_TIMEOUT_S: '5',
  WEBHOOK_TIMEOUT_S: '10',
  WEBHOOK_RECORD_S: '5',
  WEBHOOK_HOST_CONCURRENCY: '200',
  WEBHOOK_HOST_CONCURRENCY_ALL: '200',
};

let stack: TestStack;
let caller: Caller;
let redis: Redis;
beforeAll(async () => {
  ({ stack, caller } = await hostileStack(env));
  redis = new Redis({ ...redisAddress(stack.redisUrl), maxRetriesPerRequest: null });
  redis.on('error', () => {});
});
afterAll(async () => {
  redis.disconnect();
  await stack.stop();
});

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
async function standing<R extends Receiver>(made: Promise<R>): Promise<R> {
  const one = await made;
  cleanups.push(() => one.close());
  return one;
}

/** Calls a function with the webhook `url`. Resolves with the run's id when the run has ended. */
async function runTo(url: string): Promise<string> {
  const answer = await caller.call('hooks/value', { value: 1 }, to(url, 'key'));
  expect(answer.status).toBe(200);
  return String(answer.headers['x-request-id']);
}

/** The received bytes of one connection, and the socket for the answer. */
interface Heard {
  readonly socket: Socket;
  text: string;
}

/** A receiver that never answers its first connection and accepts the deliveries of all later connections. */
async function patient(): Promise<Receiver & { readonly heard: Heard[] }> {
  const heard: Heard[] = [];
  const made = await standing(
    rawReceiver((socket) => {
      const one: Heard = { socket, text: '' };
      heard.push(one);
      const first = heard.length === 1;
      socket.on('data', (chunk) => {
        one.text += chunk.toString('latin1');
        if (!first && isWhole(one.text)) take(one);
      });
    }),
  );
  return { ...made, heard };
}

const isWhole = (text: string): boolean => {
  const at = text.indexOf('\r\n\r\n');
  return at !== -1 && text.length - at - 4 >= Number(/content-length: (\d+)/i.exec(text)?.[1]);
};
const take = ({ socket }: Heard): void => void socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
const idIn = ({ text }: Heard): string | undefined => /webhook-id: (\S+)/i.exec(text)?.[1];
const bodyIn = ({ text }: Heard): string => text.slice(text.indexOf('\r\n\r\n') + 4);

/** Brings three deliveries to different points of their first attempt and stops Redis. The last attempt is answered but not recorded. */
async function midway() {
  const [before, between, after] = [await patient(), await patient(), await patient()];
  const ids = [await runTo(between.url), await runTo(after.url)];
  await until(
    () => between.heard[0] && isWhole(between.heard[0].text) && after.heard[0] && isWhole(after.heard[0].text),
  );
  // This delivery has only just connected, and the receiver has answered nothing.
  ids.unshift(await runTo(before.url));
  await until(() => before.heard[0]);
  stack.pause('redis');
  const answered = after.heard[0] as Heard;
  const read = once(answered.socket, 'close');
  take(answered);
  // The dispatcher closes its side of the connection after it has read the answer.
  await read;
  return { receivers: [before, between, after], ids };
}

async function expectRepeated({ receivers, ids }: Awaited<ReturnType<typeof midway>>): Promise<void> {
  for (const [at, id] of ids.entries()) {
    const delivery = await settled(caller, id);
    expect(delivery.status).toBe('delivered');
    const whole = receivers[at]?.heard.filter(({ text }) => isWhole(text)) ?? [];
    expect(new Set(whole.map(idIn))).toEqual(new Set([delivery.delivery_id]));
    expect(new Set(whole.map(bodyIn)).size).toBe(1);
  }
}

test('deliveries survive the kill of a dispatcher before the POST, before the answer, and before the record', async () => {
  const deliveries = await midway();
  const pid = stack.pid('dispatcher');
  const again = stack.kill('dispatcher');
  await until(() => !alive(pid));
  stack.resume('redis');
  await again;
  await expectRepeated(deliveries);
});

/** The length of the outage. */
const REDIS_STOPS_MS = 10_000;

test('deliveries survive a stop of Redis for 10 s before the POST, before the answer, and before the record', async () => {
  const deliveries = await midway();
  await sleep(REDIS_STOPS_MS);
  stack.resume('redis');
  await expectRepeated(deliveries);
});

/** Starts another dispatcher of the stack. @param shiftMs offset of its clock */
async function anotherDispatcher(shiftMs = 0): Promise<ChildProcess> {
  const clock = `const now = Date.now.bind(Date); Date.now = () => now() + ${shiftMs}`;
  const secrets = developmentSecrets(join(stack.appsDir, '..', 'data'));
  const child = spawn(
    process.execPath,
    [
      `--import=data:text/javascript,${encodeURIComponent(clock)}`,
      join(projectRoot(), 'apps/dispatcher/dist/bundle/main.js'),
    ],
    {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'test',
        OPERATIONS_PORT: '0',
        REDIS_URL: stack.redisUrlOf('dispatcher'),
        SECRETS_KEY: secrets.secretsKey,
        WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
        WEBHOOK_JITTER: '0',
        ...env,
      },
    },
  );
  cleanups.push(async () => {
    const gone = once(child, 'exit');
    child.kill();
    await gone;
  });
  await once(child, 'message');
  return child;
}

test('two dispatchers share the deliveries and make each attempt once', async () => {
  await anotherDispatcher();
  const sink = await standing(receiver(() => ({ status: 204 })));
  const ids = await Promise.all(Array.from({ length: 100 }, () => runTo(sink.url)));
  for (const id of ids) {
    const { status, attempts, delivery_id } = await settled(caller, id);
    expect(status).toBe('delivered');
    expect(sink.requests.filter(({ headers }) => headers['webhook-id'] === delivery_id)).toHaveLength(attempts);
  }
});

test("dispatchers whose clocks are an hour back and an hour ahead keep the schedule of the store's clock", async () => {
  await Promise.all([anotherDispatcher(-3_600_000), anotherDispatcher(3_600_000)]);
  const times = new Map<string, number[]>();
  const sink = await standing(
    receiver(({ headers }) => {
      const id = String(headers['webhook-id']);
      const seen = [...(times.get(id) ?? []), performance.now()];
      times.set(id, seen);
      return { status: seen.length < 3 ? 503 : 204 };
    }),
  );
  const ids = await Promise.all(Array.from({ length: 10 }, () => runTo(sink.url)));
  for (const id of ids) expect(await settled(caller, id)).toMatchObject({ status: 'delivered', attempts: 3 });
  for (const seen of times.values()) {
    expect(seen).toHaveLength(3);
    for (let at = 1; at < seen.length; at += 1) {
      expect((seen[at] as number) - (seen[at - 1] as number)).toBeGreaterThan(900);
    }
  }
});

/** The number of log lines of the dispatcher about commands that Redis refused. */
const refusals = (): number =>
  stack
    .logs()
    .split('\n')
    .filter((line) => line.startsWith('dispatcher') && line.includes('Redis refused a command')).length;

test.each([
  ['rejects all writes, as with a full disk', 'min-replicas-to-write', '1', '0'],
  ['is out of memory', 'maxmemory', '1', '0'],
])(
  'a delivery whose attempt is answered while Redis %s ends as delivered after Redis accepts writes again',
  async (_name, key, on, off) => {
    const sink = await patient();
    const id = await runTo(sink.url);
    await until(() => sink.heard[0] && isWhole(sink.heard[0].text));
    await redis.config('SET', key, on);
    const before = refusals();
    take(sink.heard[0] as Heard);
    await until(() => refusals() > before);
    await redis.config('SET', key, off);
    expect(await settled(caller, id)).toMatchObject({ status: 'delivered' });
    expect(new Set(sink.heard.map(idIn)).size).toBe(1);
    // Gateways took the store for full. They accept calls again after their next look at the store's memory.
    await until(async () => (await caller.call('hooks/value', { value: 1 })).status === 200);
  },
);

test('100 open attempts end and are recorded on SIGTERM, and none is repeated without need', async () => {
  const held: Heard[] = [];
  let heard = 0;
  let answering = true;
  const sink = await standing(
    rawReceiver((socket) => {
      const one: Heard = { socket, text: '' };
      socket.on('data', (chunk) => {
        one.text += chunk.toString('latin1');
        if (!isWhole(one.text)) return;
        heard += 1;
        if (answering) take(one);
        else held.push(one);
      });
    }),
  );
  // A receiver has its whole share of attempts only after a first success.
  const first = await runTo(sink.url);
  expect(await settled(caller, first)).toMatchObject({ status: 'delivered' });
  answering = false;
  const ids = [first, ...(await Promise.all(Array.from({ length: 100 }, () => runTo(sink.url))))];
  await until(() => held.length >= 100);
  const again = stack.kill('dispatcher', 'SIGTERM');
  answering = true;
  for (const one of held) take(one);
  await again;
  let attempts = 0;
  for (const id of ids) {
    const delivery = await settled(caller, id);
    expect(delivery.status).toBe('delivered');
    attempts += delivery.attempts;
  }
  // Each POST has a record, so no attempt was cut off and repeated.
  expect(heard).toBe(attempts);
});
