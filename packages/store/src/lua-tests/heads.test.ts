// Contract 1, "Custom runtimes": lua/head writes the head of an answer once, before the run's first item. Later readers get the head too.
import { expect, test } from '@jest/globals';
import { KEPT_PARAMETERS, type Reply, SteppedStore, steppedStores } from './stepped-store.ts';

const HEAD = '{"status":201}';
const CRASH = '{"code":"replica_crashed"}';
let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

const head = async (id: string, token: string, text = HEAD): Promise<Reply> =>
  ((await store.run('head', id, token, text)) as Reply[])[0] as Reply;
const end = (id: string, token: string, items: number, text: string, error = '', retry = 0): Promise<Reply> =>
  store.endAs(id, token, {
    state: error ? 'failed' : 'succeeded',
    items,
    streamed: 1,
    status: 201,
    error,
    head: text,
    retry,
    ms: '5',
  });
const bytes = async (): Promise<number> => Number(await store.client.get(`${store.prefix}bytes`));

test('a head is written once, and a repeat changes nothing', async () => {
  const token = await store.running('a');
  expect(await head('a', token)).toBe('ok');
  expect(await head('a', token, '{"status":500}')).toBe('ok');
  expect((await store.record('a')).head).toBe(HEAD);
});

test('a head under another attempt, after the end or to an unknown run is lost', async () => {
  const token = await store.running('a');
  expect(await head('a', 'w:9')).toBe('lost');
  expect(await head('x', token)).toBe('lost');
  await store.end('a', token);
  expect(await head('a', token)).toBe('lost');
  expect((await store.record('a')).head).toBeUndefined();
});

test('a page has the head only for a reader without items', async () => {
  const token = await store.running('a');
  const headOf = async (cursor: number, mode: 'i' | 'o' | 'l' | 'f'): Promise<Reply | undefined> =>
    (await store.follow('a', cursor, { mode }))[9];
  expect(await headOf(0, 'i')).toBe('');
  await head('a', token);
  await store.append('a', token, 1, 'a');
  expect(await headOf(0, 'i')).toBe(HEAD);
  expect(await headOf(0, 'f')).toBe(HEAD);
  expect(await headOf(1, 'i')).toBe('');
  // A returned body has a head, and its caller follows the outcome only.
  expect(await headOf(0, 'o')).toBe(HEAD);
  expect(await headOf(0, 'l')).toBe('');
});

test('lua/end writes the head of a whole answer, and the outcome contains the head', async () => {
  const token = await store.running('a');
  await end('a', token, 0, HEAD);
  const [, , , , , outcome] = await store.follow('a', 0);
  expect((outcome as Reply[])[6]).toBe(HEAD);
});

test('a run whose head was published is not requeued', async () => {
  const token = await store.running('a');
  await head('a', token);
  expect(await end('a', token, 0, '', CRASH, 1)).toEqual(['ended', 0, 0]);
});

test('the bytes of a large head count once and are freed with its run', async () => {
  const large = JSON.stringify({ status: 200, padding: 'x'.repeat(3000) });
  const token = await store.running('a', { keep: 1000 });
  const before = await bytes();
  await head('a', token, large);
  const counted = (await bytes()) - before;
  expect(counted).toBeGreaterThan(large.length);
  expect(counted).toBeLessThan(large.length * 1.2);
  await head('a', token, large);
  await end('a', token, 0, large);
  expect(await bytes()).toBe(before + counted + KEPT_PARAMETERS);
  store.advance(1100);
  await store.sweep();
  expect(await bytes()).toBe(0);
});
