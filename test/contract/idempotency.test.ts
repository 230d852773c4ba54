// Contract 1, "Idempotency": a caller that retries under its `Idempotency-Key` joins its run or gets the answer again. The function runs once.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller, type CallOptions } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { fileSays } from '../client/until.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('idempotency', ['streams', 'narrow', 'brief']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

const mark = (name: string): string => join(stack.marksDir, name);
const runOf = (answer: Pick<Answer, 'headers'>): string => String(answer.headers['x-request-id']);
const replayed = ({ headers }: Pick<Answer, 'headers'>): boolean => headers['idempotency-replayed'] === 'true';

let keys = 0;
/** Returns the options of a call under `key`, or under a new key. */
const under = (key = `key ${++keys}`, more: CallOptions = {}): CallOptions => ({
  ...more,
  headers: { 'idempotency-key': key, ...more.headers },
});

test('a call joins the running run of its key, and the function runs once', async () => {
  const params = { mark: mark('once'), gate: mark('once-gate') };
  const options = under();
  const first = caller.call('streams/once', params, options);
  await fileSays(params.mark);
  const second = caller.call('streams/once', params, options);
  const third = await caller.call('streams/once', params, { ...options, query: '?async=true' });
  await writeFile(params.gate, '');
  const [one, two] = await Promise.all([first, second]);
  expect(two.text).toBe(one.text);
  expect(JSON.parse(one.text)).toMatchObject({ run_id: runOf(one), result: 'once' });
  expect([one, two, third].map(replayed)).toEqual([false, true, true]);
  expect([runOf(two), runOf(third)]).toEqual([runOf(one), runOf(one)]);
  expect(third).toMatchObject({ status: 202, text: JSON.stringify({ run_id: runOf(one) }) });
  expect(third.headers.location).toBe(`${caller.path}/runs/${runOf(one)}`);
  expect(await readFile(params.mark, 'utf8')).toBe('.');
});

test('a call with the key of an open stream gets the stream from its start', async () => {
  const params = { folder: stack.marksDir, n: 3 };
  const options = under();
  const one = await callWhenOpen('0', () => caller.stream('streams/gated', params, options));
  expect(await one.events.next()).toBe('data: item 0');
  const two = await caller.stream('streams/gated', params, options);
  expect(replayed(two.answer)).toBe(true);
  expect(two.runId).toBe(one.runId);
  expect(await two.events.next()).toBe('data: item 0');
  for (const gate of ['1', '2']) await writeFile(mark(gate), '');
  expect(await two.events.rest()).toEqual(['data: item 1', 'data: item 2']);
  expect(await one.events.rest()).toEqual(['data: item 1', 'data: item 2']);
});

async function callWhenOpen<T>(gate: string, call: () => Promise<T>): Promise<T> {
  await writeFile(mark(gate), '');
  return call();
}

describe('an ended run is answered again', () => {
  test('with the same bytes and the status that the function set', async () => {
    const options = under();
    const first = await caller.call('streams/with_status', { status: 418 }, options);
    const again = await caller.call('streams/with_status', { status: 418 }, options);
    expect([first.status, again.status, again.text]).toEqual([418, 418, first.text]);
    expect([replayed(first), replayed(again), runOf(again)]).toEqual([false, true, runOf(first)]);
  });

  test('after a failure, too: the function is not called again', async () => {
    const options = under();
    const first = await caller.call('streams/raises', {}, options);
    const again = await caller.call('streams/raises', {}, options);
    expect([again.status, again.text, runOf(again)]).toEqual([500, first.text, runOf(first)]);
    expect(errorOf(again).code).toBe('function_error');
    expect(replayed(again)).toBe(true);
  });

  test('as a stream if the caller accepts a stream, and else as an envelope', async () => {
    const items = ['a', 'two\nlines', { b: 1 }];
    const options = under();
    const first = await caller.stream('streams/items', { items }, options);
    const events = await first.events.rest();
    const again = await caller.stream('streams/items', { items }, options);
    expect(await again.events.rest()).toEqual(events);
    expect([replayed(again.answer), again.runId]).toEqual([true, first.runId]);
    const whole = await caller.call('streams/items', { items }, options);
    expect(JSON.parse(whole.text)).toMatchObject({ run_id: first.runId, result: items });
  });

  test('as a stream with its failure at the end', async () => {
    const options = under();
    const first = await caller.stream('streams/raises_late', { n: 2 }, options);
    const events = await first.events.rest();
    expect(events).toHaveLength(3);
    const again = await caller.stream('streams/raises_late', { n: 2 }, options);
    expect(await again.events.rest()).toEqual(events);
  });

  test('immediately to a caller with Prefer: wait', async () => {
    const options = under(undefined, { headers: { prefer: 'wait=60' } });
    const first = await caller.call('streams/value', { value: 1 }, options);
    const again = await caller.call('streams/value', { value: 1 }, options);
    expect([again.status, again.text]).toEqual([200, first.text]);
  });
});

test('a different request under the key is 422 and reveals nothing of the first request', async () => {
  const options = under('fixed');
  const first = await caller.call('streams/value', { value: 1 }, options);
  const others = [
    caller.call('streams/value', { value: 2 }, options),
    caller.call('streams/value', '{"value": 1}', options),
    caller.call('streams/value', { value: 1 }, { ...options, query: '?webhookEndpoint=https%3A%2F%2Fexample.com%2F' }),
  ];
  for (const answer of await Promise.all(others)) {
    expect(answer.status).toBe(422);
    expect(errorOf(answer)).toMatchObject({ code: 'idempotency_conflict', retryable: false });
    expect(answer.text).not.toContain(runOf(first));
    expect(replayed(answer)).toBe(false);
  }
  expect((await caller.call('streams/value', { value: 1 }, options)).text).toBe(first.text);
});

test('the key belongs to project, app and function', async () => {
  const options = under('shared');
  const one = await caller.call('streams/value', { value: 1 }, options);
  const other = await caller.call('streams/coroutine', { value: 1 }, options);
  expect(runOf(other)).not.toBe(runOf(one));
  expect(other.status).toBe(200);
});

test('concurrent first calls under one key share one run', async () => {
  const params = { mark: mark('raced'), gate: mark('raced') };
  const options = under();
  const answers = await Promise.all(Array.from({ length: 20 }, () => caller.call('streams/once', params, options)));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter((answer) => !replayed(answer))).toHaveLength(1);
  expect(await readFile(params.mark, 'utf8')).toBe('.');
});

test.each([
  ['empty', ''],
  ['empty', '   '],
  ['over 255 bytes', 'x'.repeat(256)],
  ['given more than once', ['a', 'a']],
])('a key that is %s is 400', async (why, key) => {
  const answer = await caller.call('streams/value', { value: 1 }, { headers: { 'idempotency-key': key } });
  expect(answer.status).toBe(400);
  expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', message: expect.stringContaining(why) });
});

describe('the key is free again', () => {
  test('after a rejected call', async () => {
    const options = under('refused first');
    const refused = [
      await caller.call('streams/value', '[]', options),
      await caller.call('streams/value', { value: 1 }, { ...options, query: '?onDisconnect=later' }),
      await caller.call(
        'streams/value',
        { value: 1 },
        { ...options, query: '?webhookEndpoint=http%3A%2F%2F10.0.0.1%2F' },
      ),
    ];
    expect(refused.map(({ status }) => status)).toEqual([400, 400, 400]);
    const answer = await caller.call('streams/value', { value: 1 }, options);
    expect([answer.status, replayed(answer)]).toEqual([200, false]);
  });

  const asynchronous = (options: CallOptions): CallOptions => ({ ...options, query: '?async=true' });

  test('after a run that never started: cancelled in the queue, or rejected because the queue was full', async () => {
    const busy = { gate: mark('free'), started: mark('free-started') };
    const first = await caller.call('narrow/waits', busy, { query: '?async=true' });
    await fileSays(busy.started);
    const queued = { gate: mark('free'), started: mark('free-second') };
    const [cancelled, waiting, refused] = [under('cancelled in the queue'), under(), under('refused for its queue')];
    const one = await caller.call('narrow/waits', queued, asynchronous(cancelled));
    const two = await caller.call('narrow/waits', queued, asynchronous(waiting));
    expect((await caller.call('narrow/waits', queued, asynchronous(refused))).status).toBe(429);
    await caller.cancel(runOf(one));
    expect(await caller.ended(runOf(one))).toMatchObject({ status: 'cancelled' });
    await writeFile(busy.gate, '');
    for (const answer of [first, two]) expect((await caller.ended(runOf(answer))).status).toBe('succeeded');
    for (const options of [cancelled, refused]) {
      const answer = await caller.call('narrow/waits', queued, options);
      expect([answer.status, replayed(answer)]).toEqual([200, false]);
    }
    expect(await readFile(queued.started, 'utf8')).toBe('...');
  });

  test('after a run that expired in the queue', async () => {
    const busy = { gate: mark('late'), started: mark('late-started') };
    const first = await caller.call('brief/waits', busy, { query: '?async=true' });
    await fileSays(busy.started);
    const queued = { gate: mark('late'), started: mark('late-second') };
    const options = under('expired in the queue');
    const one = await caller.call('brief/waits', queued, asynchronous(options));
    expect(await caller.ended(runOf(one))).toMatchObject({ status: 'expired' });
    await writeFile(busy.gate, '');
    await caller.ended(runOf(first));
    const answer = await caller.call('brief/waits', queued, options);
    expect([answer.status, replayed(answer)]).toEqual([200, false]);
    expect(await readFile(queued.started, 'utf8')).toBe('.');
  });
});
