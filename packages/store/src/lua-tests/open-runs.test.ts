// Contract 7, "Apps": counts queued and running runs by app, over the queues of all its versions.
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
  expect(await store.run('open-runs', 1000, 'one', 'two', 'none')).toEqual([1, 1, 2, 0, 0, 0]);
});
