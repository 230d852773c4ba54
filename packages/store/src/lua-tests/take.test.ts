// Contract 1: lua/take and lua/renew, case by case.
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { LEASE, SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

test('a repeated take returns the same runs and no further run', async () => {
  for (const id of ['a', 'b', 'c']) await store.accept(id);
  expect(await store.take('w', 1, 2)).toEqual(['a', 'b']);
  expect(await store.take('w', 1, 2)).toEqual(['a', 'b']);
  expect(await store.take('w', 2, 2)).toEqual(['c']);
});

test('a take with a lower number returns no run', async () => {
  await store.take('w', 2, 1);
  await store.accept('a');
  expect(await store.take('w', 1, 1)).toEqual([]);
  expect(await store.take('w', 3, 1)).toEqual(['a']);
});

test('a repeated take leaves out runs whose lease has moved on', async () => {
  await store.accept('a');
  await store.accept('b');
  await store.take('w', 1, 2);
  await store.end('a', 'w:1');
  expect(await store.take('w', 1, 2)).toEqual(['b']);
});

test('the parameters of one take share a bound, and one run may exceed it', async () => {
  for (const id of ['a', 'b', 'c']) await store.accept(id, { params: `"${'x'.repeat(700_000)}"` });
  expect(await store.take('w', 1, 3)).toEqual(['a']);
  expect(await store.take('w', 2, 3)).toEqual(['b']);
});

test('one take returns a bounded number of runs, for any number of free slots', async () => {
  for (let n = 0; n < 300; n++) await store.accept(`r${n}`, { limit: 1000 });
  expect(await store.take('w', 1, 10_000)).toHaveLength(256);
  expect(await store.take('w', 2, 10_000)).toHaveLength(44);
});

test('a worker waits after a take that left free slots, and a full worker does not wait', async () => {
  const waiting = () => store.client.zrange(`${store.prefix}waiting:app`, '0', '-1');
  await store.take('w', 1, 1);
  expect(await waiting()).toEqual(['w']);
  await store.accept('a');
  expect(await store.take('w', 2, 1)).toEqual(['a']);
  expect(await waiting()).toEqual([]);
});

test('a wake goes to one waiting worker, and skips a worker that does not receive it', async () => {
  const hearing = store.client.duplicate();
  await hearing.ssubscribe(`${store.prefix}to-worker:w2`);
  await store.take('w1', 1, 1);
  store.advance(1);
  await store.take('w2', 1, 1);
  const woken = once(hearing, 'smessage');
  await store.accept('a');
  expect((await woken)[1]).toMatch(/^wake app \d+$/);
  hearing.disconnect();
});

test('an expired worker is forgotten with its waits, and waits again after its return', async () => {
  await store.take('w', 1, 1);
  await store.pass(LEASE + 1);
  expect(await store.client.keys(`${store.prefix}waiting:*`)).toEqual([]);
  expect(await store.client.keys(`${store.prefix}took:*`)).toEqual([]);
  await store.renew('w');
  expect(await store.client.zrange(`${store.prefix}waiting:app`, '0', '-1')).toEqual(['w']);
});

test('expired workers do not count as serving an app', async () => {
  await store.renew('w1');
  store.advance(LEASE + 1);
  await store.renew('w2');
  expect(await store.client.zrange(`${store.prefix}serving:app`, '0', '-1')).toEqual(['w2']);
});

test('renew returns for each attempt its lease, the position of the readers and a cancel', async () => {
  const token = await store.running('a', { live: 'i', paced: true });
  await store.append('a', token, 1, 'a', 'b');
  await store.attend([['a', 7, 'i']]);
  expect(await store.renew('w', ['a', token], ['a', 'w:9'], ['b', 'w:1'])).toEqual([
    [1, 2, 0],
    [0, 2, 0],
    [0, 0, 0],
  ]);
  await store.cancel('a');
  expect(await store.renew('w', ['a', token])).toEqual([[1, 2, 1]]);
});
