// Contract 2: the response envelope and the errors of calls, from a Python function to the caller.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { MAX_ITEM_BYTES } from '../stack/shared-settings.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('answers', ['streams', 'faults', 'limited', 'hasty']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

const result = (answer: Answer): unknown => (JSON.parse(answer.text) as { result: unknown }).result;

test('the envelope has exactly the contract’s fields, and the request id is the run’s id', async () => {
  const before = Date.now();
  const answer = await caller.call('streams/value', '{"value":{"a":[1.0,null]}}');
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  const runId = String(answer.headers['x-request-id']);
  expect(answer.text).toMatch(
    /^{"run_id":"[0-9a-f-]{36}","status":"succeeded","result":{"a":\[1.0,null\]},"run_time_ms":\d+(\.\d+)?,"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"}$/,
  );
  const { run_id, timestamp } = JSON.parse(answer.text) as { run_id: string; timestamp: string };
  expect(run_id).toBe(runId);
  expect(Date.parse(timestamp)).toBeGreaterThanOrEqual(before - 1);
  expect(await caller.lookUp(runId)).toMatchObject({ run_id: runId, timestamp });
});

test('the result of a generator or iterator is the list of all items in order', async () => {
  expect(result(await caller.call('streams/decorated', { n: 3 }))).toEqual([0, 1, 2]);
  expect(result(await caller.call('streams/iterator', { n: 2 }))).toEqual([1, 0]);
  expect(result(await caller.call('streams/decorated', { n: 0 }))).toEqual([]);
  const items = ['', 'two\nlines', '\r\n', 'naïve 東京 🚀', 'a\0b', { a: 1 }, null, '"'];
  expect(result(await caller.call('streams/items', { items }))).toEqual(items);
});

test('run_time_ms is the execution time of the function', async () => {
  const { run_time_ms: ms } = JSON.parse((await caller.call('streams/sleeping', { n: 2, seconds: 0.2 })).text);
  expect(ms).toBeGreaterThanOrEqual(400);
});

test.each([
  [201, 201],
  [404, 404],
  [599, 599],
  [204, 200],
  [304, 200],
  [199, 200],
  [600, 200],
  ['201', 200],
  [true, 200],
])('an object with status_code %j is answered with status %s', async (asked, status) => {
  const answer = await caller.call('streams/with_status', { status: asked });
  expect(answer.status).toBe(status);
  expect(JSON.parse(answer.text)).toMatchObject({ status: 'succeeded', result: { status_code: asked } });
});

test('the status_code of a yielded object does not set the answer’s status', async () => {
  const answer = await caller.call('faults/yields_status', { status: 404 });
  expect(answer.status).toBe(200);
  expect(result(answer)).toEqual([{ status_code: 404 }]);
});

test('positional-only parameters are passed by position', async () => {
  expect(result(await caller.call('faults/by_position', { a: 1 }))).toEqual([1, 2]);
});

test.each([
  [404, undefined, false, undefined],
  [429, undefined, true, '1'],
  [503, { 'Retry-After': '30' }, true, '30'],
  [500, { 'Retry-After': '30' }, false, undefined],
])(
  'an exception with status_code %s and headers %j sets the answer’s status',
  async (status, headers, retryable, after) => {
    const answer = await caller.call('faults/raises_status', { status, detail: 'not now', headers });
    expect(answer.status).toBe(status);
    expect(answer.headers['retry-after']).toBe(after);
    const error = { code: 'function_error', message: 'not now', retryable, type: 'HTTPException' };
    expect(JSON.parse(answer.text)).toMatchObject({ status: 'failed', error });
    expect(JSON.parse(answer.text).error).toEqual(error);
    expect((await caller.lookUp(String(answer.headers['x-request-id']))).error).toEqual(error);
  },
);

describe('a failure', () => {
  const ended = (answer: Answer): Record<string, unknown> => JSON.parse(answer.text) as Record<string, unknown>;

  test('has the envelope’s fields, with error in place of result', async () => {
    const answer = await caller.call('streams/raises', { text: 'naïve' });
    expect(answer.status).toBe(500);
    expect(ended(answer)).toEqual({
      run_id: answer.headers['x-request-id'],
      status: 'failed',
      error: { code: 'function_error', message: 'naïve', retryable: false, type: 'LookupError' },
      run_time_ms: expect.any(Number),
      timestamp: expect.stringMatching(/Z$/),
    });
    // The worker logs the traceback with the run's id.
    const runId = String(answer.headers['x-request-id']);
    await until(() =>
      stack
        .logs()
        .split('\n')
        .some((line) => line.includes(runId) && line.includes('LookupError: naïve')),
    );
  });

  test.each([
    ['a generator that raises after items', 'streams/raises_late', {}, 'failed', 500, 'function_error', false],
    ['a result that is not JSON', 'faults/no_json', {}, 'failed', 500, 'unserializable_output', false],
    ['an item that is not JSON', 'faults/no_json_item', {}, 'failed', 500, 'unserializable_output', false],
    ['a number that JSON cannot express', 'faults/not_a_number', {}, 'failed', 500, 'unserializable_output', false],
    ['a result over the app’s limit', 'limited/large', { n: 1001 }, 'failed', 500, 'output_too_large', false],
    ['items that together exceed the app’s limit', 'limited/many', { n: 11 }, 'failed', 500, 'output_too_large', false],
    [
      'an item over MAX_ITEM_BYTES',
      'streams/items',
      { items: ['x'.repeat(MAX_ITEM_BYTES + 1)] },
      'failed',
      500,
      'output_too_large',
      false,
    ],
    ['a function over its time limit', 'hasty/sleeps', {}, 'timed_out', 504, 'timed_out', true],
    ['a process that exits', 'faults/exits', {}, 'failed', 502, 'replica_crashed', true],
    ['a process that exits after an item', 'faults/exits_late', {}, 'failed', 502, 'replica_crashed', true],
    ['a process that a signal ends', 'faults/signalled', {}, 'failed', 502, 'replica_crashed', true],
  ] as const)('%s is reported', async (_, fn, params, status, http, code, retryable) => {
    const answer = await caller.call(fn, params);
    expect(ended(answer)).toMatchObject({ status, error: { code, retryable, message: expect.stringMatching(/./) } });
    expect(answer.status).toBe(http);
    expect(ended(answer)).not.toHaveProperty('result');
    // The app still serves the next call.
    expect(result(await caller.call('faults/fine'))).toBe('fine');
  });

  test('output within the limits is answered', async () => {
    expect(result(await caller.call('limited/large', { n: 900 }))).toHaveLength(900);
    expect(result(await caller.call('limited/many', { n: 9 }))).toHaveLength(9);
  });

  test('a plain stream may be longer than the limit of an answer', async () => {
    const { events } = await caller.stream('limited/many', { n: 100 });
    expect(await events.rest()).toHaveLength(100);
  });

  test('a crash during a stream is its last event, and other apps are not disturbed', async () => {
    const [one, other] = await Promise.all([
      caller.stream('faults/exits_late'),
      caller.stream('streams/sleeping', { n: 4, seconds: 0.2 }),
    ]);
    const [first, last] = await one.events.rest();
    expect(first).toBe('data: one');
    expect(last).toMatch(/^event: error\ndata: {"run_id":"[^"]+","error":{"code":"replica_crashed"/);
    expect(await other.events.rest()).toEqual([0, 1, 2, 3].map((k) => `data: ${k}`));
  });

  test('every error of a call carries a request id that can be looked up', async () => {
    const answer = await caller.call('faults/exits');
    expect(errorOf(answer).code).toBe('replica_crashed');
    const found = await caller.lookUp(String(answer.headers['x-request-id']));
    expect(found).toMatchObject({ status: 'failed', error: { code: 'replica_crashed' } });
  });
});
