// Contract 5, "Retention and limits": a plain stream keeps its newest bytes, always the newest entry and all items that the fastest reader has not
// taken.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { SteppedStore } from './stepped-store.ts';

let server: SteppedStore;
let store: SteppedStore;
let token: string;
beforeAll(async () => {
  server = await SteppedStore.open();
});
beforeEach(async () => {
  store = server.fresh();
  token = await store.running('a', { paced: true, live: 'i' });
});
afterAll(() => server.close());

/** The window counts 64 bytes beside an entry's own, so five entries make a window of 1,000. Memory counts 14 (parts/memory.lua). */
const item = 'x'.repeat(136);
const WINDOW = 1_000;

/** Appends one item at a time. Readers have taken all items except the last `behind`. */
async function stream(from: number, to: number, behind = 0): Promise<void> {
  for (let n = from; n <= to; n++) {
    const [code, last] = await store.appendWindowed('a', token, n, [item], Math.max(0, n - 1 - behind), WINDOW);
    expect([code, last]).toEqual(['ok', n]);
  }
}
const keptFrom = async (): Promise<number> => {
  const [first] = await store.client.xrange(`${store.prefix}items:a`, '-', '+', 'COUNT', 1);
  return Number.parseInt(first?.[0] ?? '0', 10);
};
const kept = (): Promise<number> => store.client.xlen(`${store.prefix}items:a`);
const size = async (): Promise<number> => Number((await store.record('a')).size);

test('the window slides: the newest bytes stay, the count continues, and the dropped items are known', async () => {
  await stream(1, 5);
  expect(await keptFrom()).toBe(1);
  await stream(6, 100);
  expect(await kept()).toBeGreaterThanOrEqual(5);
  expect(await kept()).toBeLessThanOrEqual(7);
  expect((await store.record('a')).items).toBe('100');
  expect((await store.record('a')).gone).toBe(String((await keptFrom()) - 1));
  expect(await size()).toBe(4500 + (await kept()) * 150);
  expect((await store.client.get(`${store.prefix}bytes`)) ?? '').toBe(String(530 + (await size())));
});

test('items that the fastest reader has not taken stay, in any number', async () => {
  await stream(1, 30, 20);
  expect(await keptFrom()).toBeLessThanOrEqual(10);
  expect(await kept()).toBeGreaterThanOrEqual(20);
  await stream(31, 40);
  expect(await kept()).toBeLessThanOrEqual(7);
});

test('the newest entry stays even if it alone exceeds the window', async () => {
  await stream(1, 3);
  await store.appendWindowed('a', token, 4, ['y'.repeat(5_000)], 4, WINDOW);
  expect(await kept()).toBe(1);
  expect((await store.follow('a', 3))[4]).toHaveLength(1);
  await stream(5, 5);
  expect(await keptFrom()).toBeLessThanOrEqual(5);
});

test('a large entry that must stay is not copied at every append, and is dropped when a window stands behind it', async () => {
  await store.appendWindowed('a', token, 1, ['y'.repeat(50_000)], 0, WINDOW);
  const looks = async () =>
    Number(/cmdstat_xrange:calls=(\d+)/.exec(await store.client.info('commandstats'))?.[1] ?? 0);
  const before = await looks();
  for (let n = 2; n <= 5; n++) await store.appendWindowed('a', token, n, [item], n - 1, WINDOW);
  expect((await looks()) - before).toBe(1);
  expect(await keptFrom()).toBe(1);
  await stream(6, 7);
  expect(await keptFrom()).toBe(2);
});

test('the gateways’ position of the readers counts if the worker’s position is older', async () => {
  await stream(1, 20, 100);
  expect(await kept()).toBe(20);
  await store.attend([['a', 20, 'i']]);
  await store.appendWindowed('a', token, 21, [item], 0, WINDOW);
  expect(await kept()).toBeLessThanOrEqual(7);
});

test('a reader inside an entry keeps the whole entry', async () => {
  await store.appendWindowed('a', token, 1, ['x'.repeat(300), 'x'.repeat(300), 'x'.repeat(300)], 0, WINDOW);
  await store.appendWindowed('a', token, 4, ['y'.repeat(900)], 2, WINDOW);
  await store.appendWindowed('a', token, 5, ['z'.repeat(900)], 2, WINDOW);
  expect(await keptFrom()).toBe(3);
  await store.appendWindowed('a', token, 6, ['z'], 3, WINDOW);
  expect(await keptFrom()).toBe(4);
});

test('a promised run and a non-streamed run keep all items', async () => {
  await store.accept('b', { promised: true });
  await store.take('w', 2, 1);
  for (let n = 1; n <= 30; n++) await store.append('b', 'w:2', n, item);
  expect(await store.client.xlen(`${store.prefix}items:b`)).toBe(30);
});

test('a page from before the window shows missing items, and a page inside the window shows none', async () => {
  await stream(1, 50);
  const first = await keptFrom();
  const [, , , , missing] = await store.follow('a', first - 2);
  expect((missing as string[][])[0]?.[0]).toBe(`${first}-1`);
  const [, , , , inside] = await store.follow('a', first - 1);
  expect((inside as string[][])[0]?.[0]).toBe(`${first}-1`);
});

test('a repeated append does not change the window', async () => {
  await stream(1, 50);
  const before = [await keptFrom(), await size()];
  expect((await store.appendWindowed('a', token, 50, [item], 50, WINDOW))[0]).toBe('ok');
  expect([await keptFrom(), await size()]).toEqual(before);
});
