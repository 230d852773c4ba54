// A worker is woken only for runs that a take has not seen.
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import type { WorkerStore } from '../workers/worker-store.ts';
import { RealStore } from './real-store.ts';

let store: RealStore;
const clients: Redis[] = [];
beforeAll(async () => {
  store = await RealStore.open();
});
afterAll(async () => {
  for (const client of clients) client.disconnect();
  await store.close();
});

/** The store's time, µs. */
const now = async (): Promise<number> => {
  const [seconds, micros] = await store.admin.time();
  return Number(seconds) * 1_000_000 + Number(micros);
};

interface Heard {
  readonly worker: WorkerStore;
  readonly commands: Redis;
  readonly woken: string[];
  /** Notifies the worker that runs of this app were queued at time `at`. Resolves when the worker has received the message. */
  wake(app: string, at: number): Promise<void>;
}

async function hearing(project: string): Promise<Heard> {
  const [commands, subscriber] = [
    new Redis(store.redis.socket ?? String(store.redis.port)),
    new Redis(store.redis.socket ?? String(store.redis.port)),
  ];
  clients.push(commands, subscriber);
  const worker = await store.worker('w', project, { commands, subscriber });
  const woken: string[] = [];
  // A connection that was slow to start wakes all apps (no name). This says nothing about messages.
  worker.onWake = (_project, app) => app !== undefined && woken.push(app);
  const wake = async (app: string, at: number): Promise<void> => {
    const heard = once(subscriber, 'smessageBuffer');
    await store.admin.spublish(`${projectPrefix(project)}${names.toWorker}w`, `wake ${app} ${at}`);
    await heard;
  };
  return { worker, commands, woken, wake };
}

test('a wake from before the answer to a take is outdated only for the apps of that take', async () => {
  const { worker, woken, wake } = await hearing('apart');
  const slots = (...apps: string[]) => apps.map((app) => ({ app, slots: 1 }));
  await worker.take('apart', slots('a', 'b'));
  const queuedAt = await now();
  await worker.take('apart', slots('a'));
  await wake('a', queuedAt);
  await wake('b', queuedAt);
  expect(woken).toEqual(['b']);
});

test('a wake during a take is compared with the time of the take’s answer', async () => {
  const { worker, commands, woken, wake } = await hearing('under-way');
  const call = commands.callBuffer.bind(commands);
  /** Starts a take whose answer is held back until `arrive`. */
  const take = async () => {
    let arrive = (): void => undefined;
    const arrival = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const executed = new Promise<void>((resolve) => {
      commands.callBuffer = (async (...args: Parameters<typeof call>) => {
        const reply = await call(...args);
        resolve();
        await arrival;
        return reply;
      }) as typeof call;
    });
    const taken = worker.take('under-way', [{ app: 'a', slots: 1 }]);
    await executed;
    return { taken, arrive };
  };
  const before = await now();
  const first = await take();
  await wake('a', before);
  first.arrive();
  await first.taken;
  expect(woken).toEqual([]);

  const second = await take();
  await wake('a', await now());
  expect(woken).toEqual([]);
  second.arrive();
  await second.taken;
  expect(woken).toEqual(['a']);
});
