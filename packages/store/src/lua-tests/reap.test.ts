// Contract 5: lua/reap, a pause of Redis, and due deliveries, case by case.
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { LEASE, type Reply, SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

const announce = (app: object): Promise<number> =>
  store.client.hset(`${store.prefix}apps`, 'app', JSON.stringify({ app: 'app', ...app }));

test('a run whose lease has expired ends as worker_lost, and its webhook is due', async () => {
  await store.running('a', { hook: 'http://receiver/' });
  await store.pass(LEASE - 1000);
  expect(await store.fate('a')).toBe('running');
  store.advance(1001);
  expect(await store.reap()).toEqual([0, ['a'], [], 1]);
  expect(await store.fate('a')).toBe('worker_lost');
});

test('after a pause of Redis nothing ends, and every lease has a fresh term', async () => {
  const token = await store.running('a', { absent: 0, live: 'i' });
  await store.reap();
  store.advance(60_000);
  expect((await store.reap())[3]).toBe(0);
  await store.pass(LEASE - 1000);
  expect(await store.renew('w', ['a', token])).toEqual([[1, 0, 0]]);
});

test('a pause of Redis does not count as waiting in the queue', async () => {
  await store.renew('w');
  await store.accept('a', { timeout: 8_000 });
  await store.accept('b', { timeout: 8_000 });
  await store.reap();
  store.advance(60_000);
  await store.pass(7_000);
  expect(await store.fate('a')).toBe('queued');
  expect(await store.take('w', 1, 1)).toEqual(['a']);
  await store.pass(1_500);
  expect(await store.fate('b')).toBe('expired');
});

test('a clock that stepped back ends nothing, and no lease ends in the far future', async () => {
  await store.running('a');
  await store.reap();
  store.advance(-3_600_000);
  await store.reap();
  expect(await store.fate('a')).toBe('running');
  await store.pass(LEASE + 1);
  expect(await store.fate('a')).toBe('worker_lost');
});

test('readers get time to reconnect after a pause of Redis', async () => {
  await store.renew('w');
  await store.accept('a', { absent: 3_000, live: 'i' });
  await store.reap();
  await store.unfollow('a');
  store.advance(60_000);
  await store.pass(5_000);
  expect(await store.fate('a')).toBe('queued');
  await store.pass(LEASE);
  expect(await store.fate('a')).toBe('cancelled');
});

test('a run that waited too long ends as expired', async () => {
  await store.renew('w');
  await store.accept('a', { timeout: 8_000 });
  await store.pass(7_000);
  expect(await store.fate('a')).toBe('queued');
  await store.pass(1_100);
  expect(await store.fate('a')).toBe('expired');
  expect(await store.take('w', 1, 1)).toEqual([]);
});

test('a requeued run has its app’s queue timeout, even if the queue was empty before', async () => {
  await store.renew('w');
  const token = await store.running('a', { timeout: 8_000 });
  await store.pass(10_000);
  await store.renew('w', ['a', token]);
  expect(await store.end('a', token, 0, 1)).toEqual(['requeued', 0, 0]);
  await store.pass(7_000);
  expect(await store.fate('a')).toBe('queued');
  await store.pass(1_100);
  expect(await store.fate('a')).toBe('expired');
});

test('an empty queue is forgotten with its app', async () => {
  const queues = () => store.client.exists(`${store.prefix}queues`);
  await announce({ state: 'ready' });
  const token = await store.running('a');
  await store.client.del(`${store.prefix}apps`);
  await store.pass(1_000);
  expect(await queues()).toBe(1);
  await store.end('a', token);
  await store.pass(1_000);
  expect(await queues()).toBe(0);
});

test('an expired run notifies its waiting caller at once, and its webhook is due', async () => {
  await store.renew('w');
  await store.accept('a', { timeout: 3_000, hook: 'http://receiver/', live: 'o' });
  await store.reap();
  const hearing = store.client.duplicate();
  await hearing.ssubscribe(`${store.prefix}to-gateway:g1`);
  const message = once(hearing, 'smessage');
  store.advance(3_001);
  expect((await store.reap())[1]).toEqual(['a']);
  expect((await message)[1]).toMatch(/^e a - expired 0 /);
  hearing.disconnect();
});

test('runs of an app without a worker end as unavailable after the grace time', async () => {
  await store.accept('a');
  await store.pass(29_000);
  expect(await store.fate('a')).toBe('queued');
  await store.pass(1_100);
  expect(await store.fate('a')).toBe('unavailable');
});

test('runs of a served app keep waiting, and the grace time starts at the end of the last worker', async () => {
  await store.accept('a');
  for (let n = 0; n < 4; n++) {
    await store.renew('w');
    await store.pass(10_000);
  }
  await store.pass(LEASE + 15_000);
  expect(await store.fate('a')).toBe('queued');
  await store.pass(15_000);
  expect(await store.fate('a')).toBe('unavailable');
});

test('runs of a broken app without a worker fail at once, with the app’s error', async () => {
  await announce({ state: 'broken', error: { code: 'app_failed_to_start', message: 'no module named x' } });
  await store.accept('a');
  await store.reap();
  await store.reap();
  expect(await store.fate('a')).toBe('app_failed_to_start');
  expect((await store.record('a')).error).toContain('no module named x');
});

test('a worker is woken again for a run that has been queued for over a second', async () => {
  await store.renew('w');
  const waiting = () => store.client.zscore(`${store.prefix}waiting:app`, 'w');
  await store.reap();
  await store.accept('a');
  const before = await waiting();
  await store.pass(1_200);
  expect(Number(await waiting())).toBeGreaterThan(Number(before));
});

test('runs from an earlier version do not block other runs', async () => {
  const old = ['state', 'queued', 'app', 'app', 'fn', 'fn', 'accepted', '1', 'keep', '1', 'params', '{}'];
  await store.client.hset(`${store.prefix}run:queued`, ...old);
  await store.client.hset(`${store.prefix}run:running`, ...old, 'state', 'running', 'token', 'w:1');
  await store.client.zadd(`${store.prefix}queue:app`, 1, 'queued');
  await store.client.zadd(`${store.prefix}leases`, 1, 'running');
  await store.accept('a');
  expect(await store.take('w', 1, 5)).toEqual(['a']);
  await store.end('a', 'w:1');
  await store.pass(LEASE + 1);
  expect((await store.reap())[0]).toBe(1);
});

test('runs from an earlier version are neither listed nor delivered', async () => {
  const old = ['state', 'succeeded', 'app', 'app', 'fn', 'fn', 'accepted', '1', 'terms', '1 - h', 'ended', '2'];
  await store.client.hset(`${store.prefix}run:old`, ...old, 'hook', 'http://receiver/', 'delivery', 'pending');
  await store.client.zadd(`${store.prefix}runs`, 1, 'old');
  const [read, , , runs] = (await store.run('list', '', '', 10, 10, '', '', '', '', '-inf', 'state')) as Reply[];
  expect([read, runs]).toEqual([1, []]);
  expect(await store.begin('old', 1, 't')).toBe('gone');
});

test('a due delivery is handed over again until it is settled', async () => {
  const token = await store.running('a', { hook: 'http://receiver/' });
  await store.reap();
  await store.end('a', token);
  expect((await store.reap())[2]).toEqual([]);
  await store.pass(9_000);
  store.advance(1_100);
  expect((await store.reap())[2]).toEqual([['a', 1]]);
  expect(await store.begin('a', 1, 't')).toBe('begun');
  expect(await store.recordAttempt('a', 1, 't', 'pending', 5_000)).toBe(1);
  await store.pass(12_000);
  store.advance(3_100);
  expect((await store.reap())[2]).toEqual([['a', 2]]);
  expect(await store.begin('a', 2, 'u')).toBe('begun');
  await store.recordAttempt('a', 2, 'u', 'delivered');
  expect(await store.client.exists(`${store.prefix}due`)).toBe(0);
  expect(await store.client.zcard(`${store.prefix}promises`)).toBe(1);
});

test('one attempt at a time: a finished attempt is settled, an open attempt is busy, an expired attempt is superseded', async () => {
  const token = await store.running('a', { hook: 'http://receiver/' });
  expect(await store.begin('a', 1, 't')).toBe('gone');
  await store.end('a', token);
  expect(await store.begin('a', 1, 't')).toBe('begun');
  expect(await store.begin('a', 1, 'u')).toBe('busy');
  store.advance(20_001);
  expect(await store.begin('a', 1, 'u')).toBe('begun');
  expect(await store.recordAttempt('a', 1, 't', 'delivered')).toBe(0);
  expect(await store.recordAttempt('a', 1, 'u', 'delivered')).toBe(1);
  expect(await store.recordAttempt('a', 1, 'u', 'delivered')).toBe(1);
  expect(await store.client.llen(`${store.prefix}attempts:a`)).toBe(1);
  expect(await store.begin('a', 1, 'v')).toBe('settled');
});

test('a project is idle if no run is queued, running, due or without a reader', async () => {
  await store.reap();
  // 2: the project has nothing at all.
  expect((await store.reap())[0]).toBe(2);
  await store.accept('a');
  expect((await store.reap())[0]).toBe(0);
  await store.take('w', 1, 1);
  expect((await store.reap())[0]).toBe(0);
  await store.end('a', 'w:1');
  expect((await store.reap())[0]).toBe(1);
});

test('a dead gateway is removed from its many runs in calls of a bounded size', async () => {
  const ids = Array.from({ length: 450 }, (_, n) => `r${n}`);
  for (const id of ids) await store.accept(id, { live: 'i', absent: 0, limit: 1_000 });
  await store.reap();
  store.advance(16_000);
  await store.renew('w');
  const left = () => store.client.scard(`${store.prefix}following:g1`);
  const steps: [left: number, ended: number][] = [];
  await store.client.set(`${store.prefix}reaped`, store.now());
  while ((await left()) > 0) {
    const [, , , ended] = await store.reap();
    steps.push([await left(), ended]);
  }
  expect(steps.map(([after]) => after)).toEqual([250, 50, 0]);
  for (const [after, ended] of steps) expect(ended >= 200).toBe(after > 0);
  for (const id of ids) expect(await store.fate(id)).toBe('cancelled');
  expect(await store.client.exists(`${store.prefix}gateways`, `${store.prefix}numbers`)).toBe(0);
});
