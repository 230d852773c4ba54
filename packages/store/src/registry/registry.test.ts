import type { AppDescription } from '@inference-proxy/contracts';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { GatewayStore, WorkerStore } from '../index.ts';
import { APP, RealStore, until } from '../journeys/real-store.ts';

let store: RealStore;
let gateway: GatewayStore;
let well: WorkerStore;
let ill: WorkerStore;
let project: string;
let count = 0;

const ready: AppDescription = {
  app: APP,
  kind: 'functions',
  state: 'ready',
  version: '1',
  functions: [],
  queueLimit: 1,
  queueTimeoutMs: 1,
  preformatted: true,
};
const broken: AppDescription = {
  ...ready,
  state: 'broken',
  error: { code: 'app_failed_to_start', message: 'no disk' },
};
const starting: AppDescription = { ...ready, state: 'starting' };

const stored = async (): Promise<string | undefined> => {
  const text = await store.admin.hget(`ip:{${project}}:apps`, APP);
  return text === null ? undefined : (JSON.parse(text) as AppDescription).state;
};

beforeAll(async () => {
  store = await RealStore.open();
});
afterAll(() => store.close());

beforeEach(async () => {
  count += 1;
  project = `p${count}`;
  gateway = store.gateway(`g${count}`);
  well = await store.worker(`well${count}`, project);
  ill = await store.worker(`ill${count}`, project);
});

test('gateways know an announced app, and changes reach them', async () => {
  expect((await gateway.registry.apps(project)).size).toBe(0);
  await well.announce(project, ready);
  expect((await gateway.registry.apps(project)).get(APP)).toEqual(ready);
  await well.announce(project, broken);
  await until(async () => (await gateway.registry.apps(project)).get(APP)?.state === 'broken');
  await well.withdraw(project, APP);
  await until(async () => (await gateway.registry.apps(project)).size === 0);
});

test.each([broken, starting])(
  'an app that one worker serves stays ready when another worker announces it as $state',
  async (trouble) => {
    await well.renew(project, [], [APP]);
    await ill.renew(project, [], [APP]);
    await well.announce(project, ready);
    await ill.announce(project, trouble);
    expect(await stored()).toBe('ready');
    expect((await gateway.registry.apps(project)).get(APP)?.state).toBe('ready');
  },
);

test('an app is stored as broken when its last serving worker announces it as broken', async () => {
  await well.renew(project, [], [APP]);
  await ill.renew(project, [], [APP]);
  await well.announce(project, ready);
  await ill.announce(project, broken);
  await well.announce(project, broken);
  expect(await stored()).toBe('broken');
});

test('a worker announces an app that other workers serve if the app was never announced', async () => {
  await well.renew(project, [], [APP]);
  await ill.announce(project, starting);
  expect(await stored()).toBe('starting');
});

test.each(['broken elsewhere', 'not known'])('the next renewal notifies a worker whose app is %s', async (how) => {
  const forgotten: string[] = [];
  well.onForgotten = (name) => forgotten.push(name);
  await well.announce(project, ready);
  await well.renew(project, [], [APP]);
  forgotten.length = 0;
  await well.renew(project, [], [APP]);
  expect(forgotten).toEqual([]);
  if (how === 'not known') await store.admin.hdel(`ip:{${project}}:apps`, APP);
  else await store.admin.hset(`ip:{${project}}:apps`, APP, JSON.stringify(broken));
  await well.renew(project, [], [APP]);
  expect(forgotten).toEqual([project]);
});

test('a read that is older than an announcement does not overwrite it', async () => {
  const [commands, subscriber] = [new Redis(store.redis.url), new Redis(store.redis.url)];
  const answered = Promise.withResolvers<void>();
  const handedOut = Promise.withResolvers<void>();
  let reads = 0;
  const hgetall = commands.hgetall.bind(commands);
  commands.hgetall = (async (key: string) => {
    const apps = await hgetall(key);
    // The first two reads load the project. The third read is the first refresh.
    if (++reads === 3) {
      answered.resolve();
      await handedOut.promise;
    }
    return apps;
  }) as unknown as Redis['hgetall'];
  const reading = store.gateway(`slow${count}`, { commands, subscriber });
  await well.announce(project, ready);
  expect((await reading.registry.apps(project)).get(APP)?.state).toBe('ready');
  subscriber.emit('ready');
  await answered.promise;
  await well.announce(project, broken);
  await until(async () => (await reading.registry.apps(project)).get(APP)?.state === 'broken');
  handedOut.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect((await reading.registry.apps(project)).get(APP)?.state).toBe('broken');
  for (const client of [commands, subscriber]) client.disconnect();
});

test('an unchanged announcement stays the same object, and unchanged functions outlive a change of state', async () => {
  const refreshing = store.gateway(`same${count}`, { timings: { attendMs: 20 } });
  refreshing.start();
  const functions = [{ name: 'run', parameters: [], extra: false }];
  await well.announce(project, { ...ready, functions });
  const first = (await refreshing.registry.apps(project)).get(APP);
  // The map of a project is replaced by every refresh.
  const map = await refreshing.registry.apps(project);
  await until(async () => (await refreshing.registry.apps(project)) !== map);
  expect((await refreshing.registry.apps(project)).get(APP)).toBe(first);
  await well.announce(project, { ...ready, functions, queueLimit: 2 });
  await until(async () => (await refreshing.registry.apps(project)).get(APP)?.queueLimit === 2);
  expect((await refreshing.registry.apps(project)).get(APP)?.functions).toBe(first?.functions);
  await well.announce(project, { ...ready, functions: [{ name: 'run', parameters: [], extra: true }] });
  await until(async () => (await refreshing.registry.apps(project)).get(APP)?.functions[0]?.extra === true);
  refreshing.stop();
});

test('a gateway releases the channel of a project whose apps were all withdrawn', async () => {
  const refreshing = store.gateway(`r${count}`, { timings: { attendMs: 20 } });
  refreshing.start();
  const channels = async (): Promise<unknown> =>
    store.admin.call('PUBSUB', 'SHARDCHANNELS', `ip:{${project}}:announced`);
  await well.announce(project, ready);
  expect((await refreshing.registry.apps(project)).size).toBe(1);
  expect(await channels()).toEqual([`ip:{${project}}:announced`]);
  await well.withdraw(project, APP);
  await until(async () => ((await channels()) as string[]).length === 0);
  await well.announce(project, ready);
  expect((await refreshing.registry.apps(project)).size).toBe(1);
});
