// Contract 4, "Retries": the times of the attempts of a delivery.
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defaultSchedule, nextDelayMs, retryAfterSeconds } from './retry-schedule.ts';

const schedule = { delaysS: defaultSchedule, jitter: 0.2 };
const DAY_MS = 86_400_000;

test("the default schedule is the contract's: at once, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h", () => {
  expect(defaultSchedule).toEqual([0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]);
});

test('each delay varies by at most a fifth, and no delay follows the tenth attempt', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
      const plain = (defaultSchedule[attempt] ?? 0) * 1000;
      const delay = nextDelayMs(schedule, attempt, undefined, random);
      expect(delay).toBeGreaterThanOrEqual(plain * 0.8 - 1);
      expect(delay).toBeLessThanOrEqual(plain * 1.2 + 1);
    }),
  );
  expect(nextDelayMs(schedule, 10, undefined, 0.5)).toBeUndefined();
  expect(nextDelayMs(schedule, 10, 60, 0.5)).toBeUndefined();
});

test('a Retry-After moves an attempt later, never earlier, and by at most 24 h', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.nat(2 ** 40),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (attempt, asked, random) => {
        const without = nextDelayMs(schedule, attempt, undefined, random) ?? 0;
        const delay = nextDelayMs(schedule, attempt, asked, random) ?? 0;
        expect(delay).toBeGreaterThanOrEqual(without);
        expect(delay).toBeGreaterThanOrEqual(Math.min(asked * 1000, DAY_MS));
        expect(delay).toBeLessThanOrEqual(Math.max(without, DAY_MS));
      },
    ),
  );
});

const now = Date.parse('2026-11-21T12:00:00Z');

test.each([
  ['120', 120],
  ['0', 0],
  [' 7 ', 7],
  ['315360000', 315_360_000],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ['Sat, 21 Nov 2026 12:01:00 GMT', 60],
  ['Saturday, 21-Nov-26 12:01:00 GMT', 60],
  ['Sat Nov 21 12:01:00 2026', 60],
  ['Sat, 21 Nov 2036 12:00:00 GMT', 315_619_200],
  ['Fri, 20 Nov 2026 12:00:00 GMT', 0],
  ['-5', undefined],
  ['1.5', undefined],
  ['1e3', undefined],
  ['+3', undefined],
  ['', undefined],
  ['soon', undefined],
  ['2026-11-22T00:00:00Z', undefined],
  ['Sat, 99 Nov 2026 12:01:00 GMT', undefined],
])('a Retry-After of "%s" means %s seconds', (header, expected) => {
  expect(retryAfterSeconds(header, now)).toBe(expected);
});
