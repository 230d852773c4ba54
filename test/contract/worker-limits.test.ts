// Contract 2 and 6: the limits that the worker holds functions to, also where they do not obey; the process that did not is replaced.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

/** Of the apps `hasty` and `overdue`; of the latter, `cancel_grace`, too. */
const TIMEOUT_MS = 1_000;
const GRACE_MS = 1_000;

let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/limited,demo/hasty,demo/overdue', MAX_ITEM_BYTES: '90' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  await Promise.all(['limited', 'hasty', 'overdue'].map((app) => caller.ready(app)));
});
afterAll(() => stack.stop());

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
  const { text } = await caller.request(`/v4/demo/runs/${runId}/logs`, { method: 'GET' });
  return (JSON.parse(text) as { logs: { text: string }[] }).logs.map((line) => line.text);
}

test.each(['sleeps', 'sleeps_async'])('a function over its time limit (%s) is interrupted', async (fn) => {
  // Long before its grace is over, which is longer than this test may take.
  const ended = await called(`hasty/${fn}`);
  expect(ended).toMatchObject({ httpStatus: 504, status: 'timed_out', error: { code: 'timed_out' } });
  expect(ended.run_time_ms).toBeGreaterThan(TIMEOUT_MS * 0.9);
  expect(await textsOf(ended.run_id)).toEqual(['interrupted']);
});

/** Of the process that serves `overdue` now. A call that a busy machine holds up for a second is timed_out itself. */
const pid = (): Promise<unknown> =>
  until(async () => {
    const { httpStatus, result } = await called('overdue/pid');
    return httpStatus === 200 && result;
  });

test.each(['refuses', 'blocks'])(
  'one that does not obey (%s) is timed_out after the grace, and its process is replaced',
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
  ['an item over MAX_ITEM_BYTES', 'limited/many', { n: 1 }, 'output_too_large'],
  ['one of an async generator', 'limited/many_async', { n: 1 }, 'output_too_large'],
  ['a result over the app’s max_output_bytes', 'limited/large', { n: 2_000 }, 'output_too_large'],
  ['an item that is not JSON', 'limited/no_json_async', {}, 'unserializable_output'],
])('%s fails the run, and says so in its log', async (_, fn, params, code) => {
  const ended = await called(fn, params);
  expect(ended).toMatchObject({ httpStatus: 500, status: 'failed', error: { code, retryable: false } });
  expect((await textsOf(ended.run_id)).join('\n')).toContain(code);
});

test('what is within the limits is not touched by them', async () => {
  expect(await called('limited/large', { n: 900 })).toMatchObject({ httpStatus: 200, result: 'x'.repeat(900) });
});
