import { expect, test } from '@jest/globals';
import { seldom } from './store-gauges.ts';

test('the store is read once a second, for any number of scrapers', async () => {
  let now = 0;
  let reads = 0;
  const read = seldom(
    async () => ++reads,
    () => now,
  );
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
  now = 999;
  expect(await read()).toBe(1);
  now = 1000;
  expect(await read()).toBe(2);
});

test('a failed reading has no value, and is repeated a second later', async () => {
  let now = 0;
  let away = true;
  const read = seldom(
    async () => {
      if (away) throw new Error('away');
      return 'read';
    },
    () => now,
  );
  expect(await read()).toBeUndefined();
  away = false;
  expect(await read()).toBeUndefined();
  now = 1000;
  expect(await read()).toBe('read');
});
