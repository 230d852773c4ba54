// Contract 5, "Statistics": the scripts that end runs count each run once, by outcome and latency.
import { expect, test } from '@jest/globals';
import { type SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

/** Returns the fields of an app's counters in the present minute. */
const fields = (app = 'app'): Promise<Record<string, string>> =>
  store.client.hgetall(`${store.prefix}stats:${store.now() - (store.now() % 60_000)}:${app}`);

test('an ended run counts once, also after repeats of the script', async () => {
  const token = await store.running('r1');
  store.advance(2000);
  await store.end('r1', token);
  const counted = await fields();
  expect(Object.values(counted)).toEqual(['1']);
  await store.end('r1', token);
  await store.cancel('r1');
  expect(await fields()).toEqual(counted);
});

test('a run that is put back into the queue counts when it ends', async () => {
  const token = await store.running('r1');
  expect((await store.end('r1', token, 0, 1))[0]).toBe('requeued');
  expect(await fields()).toEqual({});
  await store.take('w', 2, 1);
  await store.end('r1', 'w:2');
  expect(Object.values(await fields())).toEqual(['1']);
});

test('errors are counted beside the other ends, by app', async () => {
  for (const [id, state] of [
    ['f', 'failed'],
    ['t', 'timed_out'],
    ['c', 'cancelled'],
    ['s', 'succeeded'],
  ] as const) {
    await store.accept(id, { app: 'one' });
    const [taken] = await store.take(`w${id}`, 1, 1, 'one');
    expect(taken).toBe(id);
    await store.endAs(id, `w${id}:1`, { state });
  }
  await store.accept('queued', { app: 'two' });
  await store.cancel('queued');
  expect(await fields('one')).toEqual({ 0: '2', e0: '2' });
  expect(await fields('two')).toEqual({ 0: '1' });
});

test.each([
  [0, '0'],
  [1, '1'],
  [2, '5'],
  [3, '7'],
  [1024, '41'],
  [1_000, '40'],
  [90_000_000, '106'],
  [90_000_000_000, '112'],
])('a latency of %p ms is in range %p', async (ms, range) => {
  await store.accept('r1', { keep: 1_000 });
  store.advance(ms);
  await store.cancel('r1');
  expect(await fields()).toEqual({ [range]: '1' });
});

test('the counters of a minute have a bounded number of fields and expire', async () => {
  await store.accept('r1');
  await store.cancel('r1');
  const key = `${store.prefix}stats:${store.now() - (store.now() % 60_000)}:app`;
  expect(await store.client.pttl(key)).toBeGreaterThan(24 * 3_600_000);
  expect(await store.client.pttl(key)).toBeLessThanOrEqual(25 * 3_600_000);
  expect(await store.client.pttl(`${store.prefix}counted-apps`)).toBeGreaterThan(24 * 3_600_000);
  // An app without an end in a day leaves the list of counted apps.
  store.advance(26 * 3_600_000);
  await store.accept('r2', { app: 'later' });
  await store.cancel('r2');
  expect(await store.client.zrange(`${store.prefix}counted-apps`, '0', '-1')).toEqual(['later']);
});
