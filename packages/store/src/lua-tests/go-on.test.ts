// Contract 1 (`Prefer: wait`, `onDisconnect`): who was answered 202 has not left. The scripts `go-on` and, for a run that nobody reads yet, `accept`.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { SteppedStore } from './stepped-store.ts';

let server: SteppedStore;
let store: SteppedStore;
beforeAll(async () => {
  server = await SteppedStore.open();
});
beforeEach(async () => {
  store = server.fresh();
  // The first one takes what it finds for the work of a Redis that was away.
  await store.reap();
});
afterAll(() => server.close());

test('a run that would be cancelled with its last reader goes on, and its other terms stay', async () => {
  await store.accept('a', { absent: 0, live: 'o', promised: true, claim: 'k', keep: 7000 });
  expect(await store.run('go-on', 'a')).toBe(1);
  expect(await store.run('go-on', 'a')).toBe(0);
  expect((await store.record('a')).call).toMatch(/^app fn \d+ 7000 - pc$/);
  await store.unfollow('a');
  expect(await store.fate('a')).toBe('queued');
});

test('one that is cancelled after a time without a reader still is', async () => {
  await store.accept('a', { absent: 5000, live: 'o' });
  expect(await store.run('go-on', 'a')).toBe(0);
  await store.unfollow('a');
  await store.pass(6000);
  expect(await store.fate('a')).toBe('cancelled');
});

test('an unknown run stays unknown', async () => {
  expect(await store.run('go-on', 'a')).toBe(0);
  expect(await store.record('a')).toEqual({});
});

test('a run that nobody reads from its accept on is cancelled when its time is up, unless a reader comes', async () => {
  await store.accept('left', { absent: 5000 });
  await store.accept('read', { absent: 5000 });
  await store.accept('on', { absent: 0 });
  await store.follow('read', 0);
  await store.pass(6000);
  expect(await store.fate('left')).toBe('cancelled');
  expect(await store.fate('read')).toBe('queued');
  expect(await store.fate('on')).toBe('queued');
});
