// Contract 3 and Contract 5: lua/append, lua/end and lua/cancel, case by case.
import { expect, test } from '@jest/globals';
import { SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

test.each([
  ['the next items are written', 3, ['c'], ['ok', 3, 0, 0]],
  ['the whole batch is there already: nothing is written, and the answer is ok', 1, ['a', 'b'], ['ok', 2, 0, 0]],
  ['part of the batch is there already: resend from the end', 2, ['b', 'c'], ['behind', 2, 0, 0]],
  ['beyond the end: resend from the end', 4, ['d'], ['behind', 2, 0, 0]],
])('append: %s', async (_, first, items, answer) => {
  const token = await store.running('a');
  expect(await store.append('a', token, 1, 'a', 'b')).toEqual(['ok', 2, 0, 0]);
  expect(await store.append('a', token, first, ...items)).toEqual(answer);
});

test('an append under another attempt, after the end or to an unknown run is lost', async () => {
  const token = await store.running('a');
  expect((await store.append('a', 'w:9', 1, 'a'))[0]).toBe('lost');
  expect((await store.append('x', token, 1, 'a'))[0]).toBe('lost');
  await store.end('a', token);
  expect((await store.append('a', token, 1, 'a'))[0]).toBe('lost');
});

test('an append returns the position of the readers and a cancel', async () => {
  const token = await store.running('a', { live: 'i', paced: true });
  await store.append('a', token, 1, 'a', 'b', 'c');
  await store.attend([['a', 2, 'i']]);
  await store.cancel('a');
  expect(await store.append('a', token, 4, 'd')).toEqual(['ok', 4, 2, 1]);
});

test('a repeated end gets the first answer and changes nothing', async () => {
  const token = await store.running('a', { hook: 'http://receiver/' });
  expect(await store.end('a', token)).toEqual(['ended', 0, 1]);
  const { ended } = await store.record('a');
  store.advance(500);
  expect(await store.end('a', token)).toEqual(['ended', 0, 1]);
  expect((await store.record('a')).ended).toBe(ended);
});

test('an end with more items than the store has is refused with the last number', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'a');
  expect(await store.end('a', token, 3)).toEqual(['behind', 1, 0]);
  await store.append('a', token, 2, 'b', 'c');
  expect(await store.end('a', token, 3)).toEqual(['ended', 3, 0]);
});

test('a crashed attempt goes back to the queue once, and its late writes are lost', async () => {
  const first = await store.running('a');
  expect(await store.end('a', first, 0, 1)).toEqual(['requeued', 0, 0]);
  expect(await store.end('a', first, 0, 1)).toEqual(['requeued', 0, 0]);
  expect(await store.take('w', 2, 1)).toEqual(['a']);
  expect((await store.end('a', first, 0, 1))[0]).toBe('lost');
  expect((await store.append('a', first, 1, 'a'))[0]).toBe('lost');
  expect(await store.end('a', 'w:2', 0, 1)).toEqual(['ended', 0, 0]);
  expect(await store.fate('a')).toBe('replica_crashed');
});

test('a run is not requeued after an item was published or after a cancel', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'a');
  expect((await store.end('a', token, 0, 1))[0]).toBe('ended');
  await store.accept('b');
  await store.take('w', 2, 1);
  await store.cancel('b');
  expect((await store.end('b', 'w:2', 0, 1))[0]).toBe('ended');
});

test('a cancel finds a queued, running, ended and unknown run, and a repeated cancel is no conflict', async () => {
  await store.accept('a');
  expect(await store.cancel('a', 'r1')).toBe('queued');
  expect(await store.cancel('a', 'r1')).toBe('queued');
  expect(await store.cancel('a', 'r2')).toBe('ended');
  const token = await store.running('b');
  expect(await store.cancel('b', 'r1')).toBe('running');
  await store.end('b', token);
  expect(await store.cancel('b', 'r1')).toBe('running');
  expect(await store.cancel('b', 'r2')).toBe('ended');
  expect(await store.fate('b')).toBe('succeeded');
  expect(await store.cancel('x')).toBe('unknown');
});

test('the webhook of a cancelled run is due at once if it was queued, and at its end if it was running', async () => {
  const due = (id: string) => store.client.zscore(`${store.prefix}due`, id);
  await store.accept('a', { hook: 'http://receiver/', promised: true });
  expect(await store.run('cancel', 10_000, 60_000, 'a', 'r1')).toEqual([['queued', 1]]);
  expect(await store.fate('a')).toBe('cancelled');
  expect(await due('a')).not.toBeNull();
  const token = await store.running('b', { hook: 'http://receiver/', promised: true });
  expect(await store.run('cancel', 10_000, 60_000, 'b', 'r1')).toEqual([['running', 0]]);
  expect(await due('b')).toBeNull();
  const error = '{"code":"cancelled","message":"m"}';
  expect(await store.endAs('b', token, { state: 'cancelled', error })).toEqual(['ended', 0, 1]);
  expect(await due('b')).not.toBeNull();
});

test('an ended run keeps its record and items for its retention, and drops its parameters', async () => {
  const token = await store.running('a', { keep: 5000 });
  await store.append('a', token, 1, 'a');
  await store.log('a', token, 1, ['printed']);
  await store.end('a', token, 1);
  expect((await store.record('a')).body).toBe('1');
  store.advance(4900);
  await store.sweep();
  expect(await store.fate('a')).toBe('succeeded');
  store.advance(200);
  await store.sweep();
  expect((await store.client.keys(`${store.prefix}*:a`)).sort()).toEqual([]);
  expect(await store.client.zcard(`${store.prefix}runs`)).toBe(0);
});
