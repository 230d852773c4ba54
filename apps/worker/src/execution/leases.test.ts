// Contract 5: the renewal of leases, with a scripted store.
import { defaultTimings, type RenewAnswer } from '@inference-proxy/store';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Leases } from './leases.ts';
import { type OpenAttempt, OpenAttempts } from './open-attempts.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function leasesOf(...ids: string[]) {
  const events: string[] = [];
  const held = new OpenAttempts<OpenAttempt>();
  for (const runId of ids)
    held.add({
      project: 'demo',
      runId,
      token: 't',
      readTo: (upTo) => events.push(`${runId} taken ${upTo}`),
      cancelled: () => events.push(`${runId} cancelled`),
      lost: () => events.push(`${runId} lost`),
    });
  const calls: string[][] = [];
  const store = { answers: [] as (RenewAnswer[] | Error)[] };
  const leases = new Leases(
    'demo',
    {
      timings: { ...defaultTimings, leaseMs: 15_000, renewMs: 5_000 },
      renew: async (_project, runs, apps) => {
        calls.push([...apps, ...runs.map(({ runId }) => runId)]);
        const answer =
          store.answers.shift() ?? runs.map(() => ({ state: 'held', position: 0, cancel: false }) as const);
        if (answer instanceof Error) throw answer;
        return answer;
      },
    },
    held,
    () => ['chat'],
    { warn: () => undefined, error: () => undefined },
  );
  return { leases, held, events, calls, store };
}

test('all held runs are renewed with a call for each term, and each run gets its answer', async () => {
  const { leases, events, calls, store } = leasesOf('a', 'b');
  store.answers.push([{ state: 'held', position: 3, cancel: true }, { state: 'lost' }]);
  leases.start();
  await jest.advanceTimersByTimeAsync(0);
  expect(calls).toEqual([['chat', 'a', 'b']]);
  expect(events).toEqual(['a taken 3', 'a cancelled', 'b lost']);
  await jest.advanceTimersByTimeAsync(5_000);
  expect(calls).toHaveLength(2);
  await leases.stop();
  expect(jest.getTimerCount()).toBe(0);
});

test('a failed renewal is repeated soon', async () => {
  const { leases, calls, store } = leasesOf('a');
  store.answers.push(new Error('away'));
  leases.start();
  await jest.advanceTimersByTimeAsync(600);
  expect(calls).toHaveLength(2);
  await leases.stop();
});
