// Contract 2 and 6: the worker enforces limits on functions. A process whose function ignores the interrupt is replaced.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { MAX_ITEM_BYTES } from '../stack/shared-settings.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

/** The time limit of the apps `hasty` and `overdue`. `overdue` has a `cancel_grace` of GRACE_MS. */
const TIMEOUT_MS = 1_000;
const GRACE_MS = 1_000;
const LARGE = ['x'.repeat(MAX_ITEM_BYTES + 1)];

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('worker-limits', ['limited', 'hasty', 'overdue', 'streams']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

interface Envelope {
  readonly run_id: string;
  readonly status: string;
  readonly result?: unknown;
  readonly run_time_ms: number;
  readonly error?: { readonly code: string };
}

async function called(fn: string, params: object = {}): Promise<Envelope & { httpStatus: number }> {
  const answer = await caller.call(fn, params);
  return { httpStatus: answer.status, ...(JSON.parse(answer.text) as Envelope) };
}

async function textsOf(runId: string): Promise<string[]> {
  const { text } = await caller.request(`${caller.path}/runs/${runId}/logs`, { method: 'GET' });
  return (JSON.parse(text) as { logs: { text: string }[] }).logs.map((line) => line.text);
}

test.each(['sleeps', 'sleeps_async'])('a function over its time limit (%s) is interrupted', async (fn) => {
  // The app's grace time exceeds the limit of this test, so the run was interrupted.
  const ended = await called(`hasty/${fn}`);
  expect(ended).toMatchObject({ httpStatus: 504, status: 'timed_out', error: { code: 'timed_out' } });
  expect(ended.run_time_ms).toBeGreaterThan(TIMEOUT_MS * 0.9);
  expect(await textsOf(ended.run_id)).toEqual(['interrupted']);
});

/** Returns the pid of the replica of `overdue`. Asks again because a call can time out on a busy machine. */
const pid = (): Promise<unknown> =>
  until(async () => {
    const { httpStatus, result } = await called('overdue/pid');
    return httpStatus === 200 && result;
  });

test.each(['refuses', 'blocks'])(
  'a function that ignores the interrupt (%s) times out after the grace time, and its process is replaced',
  async (fn) => {
    const before = await pid();
    const ended = await called(`overdue/${fn}`);
    expect(ended).toMatchObject({ httpStatus: 504, status: 'timed_out', error: { code: 'timed_out' } });
    expect(ended.run_time_ms).toBeGreaterThan((TIMEOUT_MS + GRACE_MS) * 0.9);
    expect(await textsOf(ended.run_id)).toEqual(fn === 'refuses' ? ['refused'] : []);
    expect(await pid()).not.toBe(before);
  },
);

test.each([
  ['an item over MAX_ITEM_BYTES', 'streams/items', { items: LARGE }, 'output_too_large'],
  ['an item of an async generator over MAX_ITEM_BYTES', 'streams/items_async', { items: LARGE }, 'output_too_large'],
  ['a result over the app’s max_output_bytes', 'limited/large', { n: 2_000 }, 'output_too_large'],
  ['an item that is not JSON', 'limited/no_json_async', {}, 'unserializable_output'],
])('%s fails the run, and the run’s log has the error', async (_, fn, params, code) => {
  const ended = await called(fn, params);
  expect(ended).toMatchObject({ httpStatus: 500, status: 'failed', error: { code, retryable: false } });
  expect((await textsOf(ended.run_id)).join('\n')).toContain(code);
});

test('output within the limits is not changed', async () => {
  expect(await called('limited/large', { n: 900 })).toMatchObject({ httpStatus: 200, result: 'x'.repeat(900) });
});
