// Contract 7, "Apps": counts runs by app over the queues of all its versions, and replicas over all live workers.
import { expect, test } from '@jest/globals';
import { type SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

test('queued and running runs are counted by app', async () => {
  await store.accept('a1', { app: 'one' });
  await store.accept('a2', { app: 'one' });
  await store.accept('b1', { app: 'two' });
  await store.take('w', 1, 1, 'one');
  await store.client.hset(`${store.prefix}queues`, 'two@1f2e', '1000');
  await store.client.zadd(`${store.prefix}queue:two@1f2e`, 1, 'b2');
  expect(await store.run('app-counts', 1000, 'one', 'two', 'none')).toEqual([1, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
});

test('replicas of live workers are counted, and counts of a dead worker are removed with the worker', async () => {
  const counts = async () => (await store.run('app-counts', 1000, 'one')) as number[];
  const replicas = `${store.prefix}replicas:one`;
  await store.client.hset(`${store.prefix}apps`, 'one', '{"state":"ready"}');
  await store.reap();
  await store.run('renew', 'v', 10_000, 1, 'one');
  await store.run('renew', 'w', 1_000, 1, 'one');
  await store.client.hset(replicas, { v: '2 3', w: '1 1', unknown: '7 7' });
  // A worker whose app is broken serves no run, and still has processes to start.
  await store.client.zrem(`${store.prefix}serving:one`, 'v');
  expect((await counts()).slice(2)).toEqual([3, 4]);
  await store.pass(1_001);
  expect((await counts()).slice(2)).toEqual([2, 3]);
  expect(await store.client.hkeys(replicas)).toEqual(['v', 'unknown']);
});
