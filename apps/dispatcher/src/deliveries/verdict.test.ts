// Contract 4, "Retries" and "Isolation": the state of a delivery after an attempt, and the attempt's meaning for the receiver's circuit.
import type { AttemptRecord } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defaultSchedule } from './retry-schedule.ts';
import { circuitSignal, verdict } from './verdict.ts';

const schedule = { delaysS: defaultSchedule, jitter: 0 };
const made = (fields: Partial<AttemptRecord>): AttemptRecord => ({ at: 0, durationMs: 1, ...fields });
const judge = (fields: Partial<AttemptRecord>, attempt = 1, refusals = 0) =>
  verdict(made(fields), { attempt, refusals, overdue: false }, schedule, 0.5);

test.each([200, 201, 202, 204, 226, 299])('an answer %i means delivered', (status) => {
  expect(judge({ status }, 10)).toEqual({ state: 'delivered' });
});

test('an answer 410 ends the delivery at once', () => {
  expect(judge({ status: 410 })).toEqual({ state: 'failed', why: 'gone' });
});

test('a delivery that was altered in the store fails at once', () => {
  expect(judge({ errorClass: 'altered' })).toEqual({ state: 'failed', why: 'altered' });
});

test.each<[string, Partial<AttemptRecord>]>([
  ...[500, 502, 503, 599, 429, 408, 404].map((status): [string, Partial<AttemptRecord>] => [`${status}`, { status }]),
  ...[300, 301, 302, 304, 307].map((status): [string, Partial<AttemptRecord>] => [
    `${status}`,
    { status, errorClass: 'redirect' },
  ]),
  ...['dns', 'refused', 'blocked', 'tls', 'timeout', 'reset', 'bad_response', 'unsigned'].map(
    (errorClass): [string, Partial<AttemptRecord>] => [errorClass, { errorClass }],
  ),
])('an attempt that ends with %s is retried to the end of the schedule', (_name, fields) => {
  for (let attempt = 1; attempt < 10; attempt += 1) {
    expect(judge(fields, attempt)).toEqual({
      state: 'pending',
      delayMs: (defaultSchedule[attempt] ?? 0) * 1000,
      refusals: 0,
    });
  }
  expect(judge(fields, 10)).toEqual({ state: 'failed', why: 'exhausted' });
});

test.each([400, 401, 403, 409, 413, 422, 451, 499])(
  'an answer %i is retried three more times, and then the delivery fails',
  (status) => {
    const states = [1, 2, 3, 4].map((attempt) => judge({ status }, attempt, attempt - 1).state);
    expect(states).toEqual(['pending', 'pending', 'pending', 'failed']);
    expect(judge({ status }, 4, 3)).toEqual({ state: 'failed', why: 'refused' });
  },
);

test('failures between refusals do not count as refusals', () => {
  expect(judge({ status: 400 }, 6, 0)).toMatchObject({ state: 'pending', refusals: 1 });
  expect(judge({ status: 503 }, 7, 1)).toMatchObject({ state: 'pending', refusals: 1 });
  expect(judge({ status: 403 }, 9, 3)).toEqual({ state: 'failed', why: 'refused' });
});

test('every answer has a verdict, and only a 2xx answer means delivered', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 200, max: 599 }),
      fc.integer({ min: 1, max: 10 }),
      fc.nat(),
      (status, attempt, retryAfterS) => {
        const { state } = judge({ status, ...(retryAfterS !== undefined && { retryAfterS }) }, attempt);
        expect(state === 'delivered').toBe(status < 300);
      },
    ),
  );
});

test('a delivery that was parked until the end of its schedule has no further attempt', () => {
  const history = { attempt: 1, refusals: 0, overdue: true };
  expect(verdict(made({ status: 500 }), history, schedule, 0.5)).toEqual({ state: 'failed', why: 'exhausted' });
  expect(verdict(made({ status: 200 }), history, schedule, 0.5)).toEqual({ state: 'delivered' });
});

test.each([
  [{ status: 200 }, 'good'],
  [{ status: 204 }, 'good'],
  [{ status: 307, errorClass: 'redirect' }, 'good'],
  [{ status: 400 }, 'good'],
  [{ status: 404 }, 'good'],
  [{ status: 410 }, 'good'],
  [{ status: 429 }, 'bad'],
  [{ status: 500 }, 'bad'],
  [{ status: 503 }, 'bad'],
  [{ errorClass: 'dns' }, 'bad'],
  [{ errorClass: 'refused' }, 'bad'],
  [{ errorClass: 'tls' }, 'bad'],
  [{ errorClass: 'timeout' }, 'bad'],
  [{ errorClass: 'reset' }, 'bad'],
  [{ errorClass: 'bad_response' }, 'none'],
  [{ errorClass: 'blocked' }, 'none'],
  [{ errorClass: 'unsigned' }, 'none'],
] as const)('%j means %s for the circuit of its receiver', (made, expected) => {
  expect(circuitSignal({ at: 0, durationMs: 0, ...made })).toBe(expected);
});
