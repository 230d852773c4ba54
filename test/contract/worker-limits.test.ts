// Contract 2 and 6: the limits that the worker holds functions to, also where they do not obey; the process that did not is replaced.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

/** Of the app: `timeout` and `cancel_grace`. */
const TIMEOUT_MS = 1_000;
const GRACE_MS = 1_000;

let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/limited', MAX_ITEM_BYTES: '90' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('limited');
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
  const answer = await caller.call(`limited/${fn}`, params);
  return { httpStatus: answer.status, ...(JSON.parse(answer.text) as Envelope) };
}

async function textsOf(runId: string): Promise<string[]> {
  const { text } = await caller.request(`/v4/demo/runs/${runId}/logs`, { method: 'GET' });
  return (JSON.parse(text) as { logs: { text: string }[] }).logs.map((line) => line.text);
}

test.each(['sleeps', 'sleeps_async'])('a function over its time limit (%s) is interrupted', async (fn) => {
  const ended = await called(fn);
  expect(ended).toMatchObject({ httpStatus: 504, status: 'timed_out', error: { code: 'timed_out' } });
  expect(ended.run_time_ms).toBeGreaterThan(TIMEOUT_MS * 0.9);
  expect(ended.run_time_ms).toBeLessThan(TIMEOUT_MS + GRACE_MS * 0.9);
});

test.each(['refuses', 'blocks'])(
  'one that does not obey (%s) is timed_out after the grace, and its process is replaced',
  async (fn) => {
    const { result: before } = await called('pid');
    const ended = await called(fn);
    expect(ended).toMatchObject({ httpStatus: 504, status: 'timed_out', error: { code: 'timed_out' } });
    expect(ended.run_time_ms).toBeGreaterThan((TIMEOUT_MS + GRACE_MS) * 0.9);
    expect(await textsOf(ended.run_id)).toEqual(fn === 'refuses' ? ['refused'] : []);
    const { result: after, httpStatus } = await called('pid');
    expect(httpStatus).toBe(200);
    expect(after).not.toBe(before);
  },
);

test.each([
  ['an item over MAX_ITEM_BYTES', 'many', { n: 1 }, 'output_too_large'],
  ['one of an async generator', 'many_async', { n: 1 }, 'output_too_large'],
  ['a result over the app’s max_output_bytes', 'large', { n: 2_000 }, 'output_too_large'],
  ['an item that is not JSON', 'no_json_async', {}, 'unserializable_output'],
])('%s fails the run, and says so in its log', async (_, fn, params, code) => {
  const ended = await called(fn, params);
  expect(ended).toMatchObject({ httpStatus: 500, status: 'failed', error: { code, retryable: false } });
  expect((await textsOf(ended.run_id)).join('\n')).toContain(code);
});

test('what is within the limits is not touched by them', async () => {
  expect(await called('large', { n: 900 })).toMatchObject({ httpStatus: 200, result: 'x'.repeat(900) });
});
