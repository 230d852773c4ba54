// Contract 1, "Asynchronous calls" and "Disconnects": a caller that got a 202 answer has not disconnected. Tests lua/detach, and lua/accept for
// a run without a reader.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { SteppedStore } from './stepped-store.ts';

let server: SteppedStore;
let store: SteppedStore;
beforeAll(async () => {
  server = await SteppedStore.open();
});
beforeEach(async () => {
  store = server.fresh();
  // A project's first reap ends nothing, as after a pause of Redis.
  await store.reap();
});
afterAll(() => server.close());

test('a run with onDisconnect=cancel continues without a reader, and its other terms stay', async () => {
  await store.accept('a', { absent: 0, live: 'o', promised: true, claim: 'k', keep: 7000 });
  expect(await store.run('detach', 'a')).toBe(1);
  expect(await store.run('detach', 'a')).toBe(0);
  expect((await store.record('a')).call).toMatch(/^app fn \d+ 7000 - pc$/);
  await store.unfollow('a');
  expect(await store.fate('a')).toBe('queued');
});

test('a run with a timer is still cancelled after its time without a reader', async () => {
  await store.accept('a', { absent: 5000, live: 'o' });
  expect(await store.run('detach', 'a')).toBe(0);
  await store.unfollow('a');
  await store.pass(6000);
  expect(await store.fate('a')).toBe('cancelled');
});

test('an unknown run stays unknown', async () => {
  expect(await store.run('detach', 'a')).toBe(0);
  expect(await store.record('a')).toEqual({});
});

test('a run without a reader since its accept is cancelled after its time, unless a reader comes', async () => {
  await store.accept('left', { absent: 5000 });
  await store.accept('read', { absent: 5000 });
  await store.accept('on', { absent: 0 });
  await store.follow('read', 0);
  await store.pass(6000);
  expect(await store.fate('left')).toBe('cancelled');
  expect(await store.fate('read')).toBe('queued');
  expect(await store.fate('on')).toBe('queued');
});
