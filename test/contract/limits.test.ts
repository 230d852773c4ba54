// Contract 1, 2 and 6: each limit has an error code, which the caller and the receiver get. Limits of items and outputs: answers.test.ts.
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { fileSays, until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { MAX_BODY_BYTES, MAX_ITEM_BYTES } from '../stack/shared-settings.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await joinSharedStack('limits', ['narrow', 'brief', 'limited', 'hasty', 'streams']);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await sink.close();
});

const mark = (name: string): string => join(stack.marksDir, name);
const body = (answer: Pick<Answer, 'text'>): Record<string, unknown> => JSON.parse(answer.text);
const runOf = (answer: Answer): string => String(answer.headers['x-request-id']);
const hook = (): string => `?webhookEndpoint=${encodeURIComponent(sink.url)}`;
/** Returns the body that the receiver got for a run, as text. */
const lookUp = (runId: string): Promise<string> =>
  until(() => sink.requests.find(({ headers }) => headers['x-request-id'] === runId)?.body.toString());

test('a call to a full queue is 429 with Retry-After and is not accepted', async () => {
  const [gate, started] = [mark('full-gate'), mark('full-started')];
  const asynchronous = { query: '?async=true' };
  const accepted = [runOf(await caller.call('narrow/waits', { gate, started }, asynchronous))];
  await fileSays(started);
  for (let n = 0; n < 2; n++)
    accepted.push(runOf(await caller.call('narrow/waits', { gate, started: mark(`full-${n}`) }, asynchronous)));
  for (const query of ['', '?async=true', hook()]) {
    const refused = await caller.call('narrow/waits', { gate, started: mark('full-refused') }, { query });
    expect(refused.status).toBe(429);
    expect(errorOf(refused)).toMatchObject({ code: 'overloaded', retryable: true });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    const looked = await caller.request(`${caller.path}/runs/${runOf(refused)}`, { method: 'GET' });
    expect(looked.status).toBe(404);
  }
  await writeFile(gate, '');
  for (const runId of accepted) expect((await caller.ended(runId)).status).toBe('succeeded');
  expect(existsSync(mark('full-refused'))).toBe(false);
});

test('a run that waits too long in the queue expires and never starts, and its caller and receiver are notified', async () => {
  const [gate, started] = [mark('late-gate'), mark('late-started')];
  const first = runOf(await caller.call('brief/waits', { gate, started }, { query: '?async=true' }));
  await fileSays(started);
  const waiting = caller.call('brief/waits', { gate, started: mark('late-never') }, { query: hook() });
  const streaming = caller.open(`${caller.path}/brief/waits`, {
    body: JSON.stringify({ gate, started: mark('late-never') }),
    headers: { accept: 'text/event-stream' },
  });
  const answer = await waiting;
  expect(answer.status).toBe(504);
  expect(body(answer)).toMatchObject({ status: 'expired', error: { code: 'expired', retryable: true } });
  expect((await streaming).statusCode).toBe(504);
  const runId = runOf(answer);
  expect(await lookUp(runId)).toBe(answer.text);
  const record = await caller.lookUp(runId);
  expect(record).toMatchObject({ status: 'expired', error: { code: 'expired' } });
  expect(record).not.toHaveProperty('started_at');
  // The app's `queue_timeout` is 2 s. The interval of the reap (100 ms) and the load of the machine add to this time.
  const waited = Date.parse(String(record.ended_at)) - Date.parse(String(record.queued_at));
  expect(waited).toBeGreaterThanOrEqual(2000);
  // The first run still blocked the queue when the caller and the receiver got the error.
  expect((await caller.lookUp(first)).status).toBe('running');
  await writeFile(gate, '');
  expect((await caller.ended(first)).status).toBe('succeeded');
  expect(existsSync(mark('late-never'))).toBe(false);
});

test('a function over its `timeout` is reported as timed_out to the caller and the receiver', async () => {
  const answer = await caller.call('hasty/sleeps', {}, { query: hook() });
  expect(answer.status).toBe(504);
  expect(body(answer)).toMatchObject({ status: 'timed_out', error: { code: 'timed_out', retryable: true } });
  expect(await lookUp(runOf(answer))).toBe(answer.text);
});

test('a body over MAX_BODY_BYTES is 413 for every form of a call, and the call is not accepted', async () => {
  const large = JSON.stringify({ value: 'x'.repeat(MAX_BODY_BYTES) });
  for (const query of ['', '?async=true', hook()]) {
    const answer = await caller.call('streams/value', large, { query });
    expect(answer.status).toBe(413);
    expect(errorOf(answer)).toMatchObject({ code: 'payload_too_large', retryable: false });
    expect((await caller.request(`${caller.path}/runs/${runOf(answer)}`, { method: 'GET' })).status).toBe(404);
  }
});

test.each([
  ['an item over MAX_ITEM_BYTES', 'streams/items', { items: ['x'.repeat(MAX_ITEM_BYTES + 1)] }],
  ['a result over the app’s max_output_bytes', 'limited/large', { n: 1001 }],
  ['items that together exceed max_output_bytes', 'limited/many', { n: 11 }],
])('%s is reported as output_too_large to the caller and the receiver', async (_, fn, params) => {
  const answer = await caller.call(fn, params, { query: hook() });
  expect(answer.status).toBe(500);
  expect(body(answer)).toMatchObject({ status: 'failed', error: { code: 'output_too_large', retryable: false } });
  expect(await lookUp(runOf(answer))).toBe(answer.text);
});
