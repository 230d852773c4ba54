// Contract 5, "Cancel: `POST /runs/{run_id}/cancel`": a queued run never starts, a running run is interrupted, callers and receivers are notified.
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { fileSays, until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await joinSharedStack('cancel', ['streams', 'narrow']);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await sink.close();
});

const mark = (name: string): string => join(stack.marksDir, name);
const body = (answer: Pick<Answer, 'text'>): Record<string, unknown> => JSON.parse(answer.text);
const runOf = (answer: Answer): string => String(answer.headers['x-request-id']);
const toSink = (): string => `?async=true&webhookEndpoint=${encodeURIComponent(sink.url)}`;
/** Returns the envelope that the receiver got for a run. */
const lookUp = (runId: string): Promise<Record<string, unknown>> =>
  until(() => sink.requests.map((request) => JSON.parse(`${request.body}`)).find(({ run_id: id }) => id === runId));

test('a cancelled run in the queue never starts, frees its place in the queue, and is delivered as cancelled', async () => {
  const [gate, started] = [mark('queue-gate'), mark('queue-first')];
  const running = runOf(await caller.call('narrow/waits', { gate, started }, { query: '?async=true' }));
  await fileSays(started);
  const queue = (name: string, query = '?async=true'): Promise<Answer> =>
    caller.call('narrow/waits', { gate, started: mark(name) }, { query });
  const [one, two] = [await queue('queue-one', toSink()), await queue('queue-two')];
  expect((await queue('queue-three')).status).toBe(429);
  const asked = await caller.cancel(runOf(one));
  expect(asked.status).toBe(202);
  expect(body(asked)).toEqual({ run_id: runOf(one), status: 'cancelled' });
  expect(asked.headers.location).toBe(`${caller.path}/runs/${runOf(one)}`);
  expect(await caller.lookUp(runOf(one))).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
  expect(await caller.lookUp(runOf(one))).not.toHaveProperty('started_at');
  // The place in the queue is free.
  const three = await queue('queue-three');
  expect(three.status).toBe(202);
  expect(await lookUp(runOf(one))).toMatchObject({
    status: 'cancelled',
    error: { code: 'cancelled', retryable: false },
  });
  await writeFile(gate, '');
  for (const runId of [running, runOf(two), runOf(three)]) expect((await caller.ended(runId)).status).toBe('succeeded');
  expect(existsSync(mark('queue-one'))).toBe(false);
});

test('a running run is interrupted: its finally blocks run, its stream ends with the error, and its webhook is cancelled', async () => {
  const webhook = `?webhookEndpoint=${encodeURIComponent(sink.url)}`;
  const { events, runId } = await caller.stream('streams/tidy', { mark: mark('tidied') }, { query: webhook });
  expect(await events.next()).toBe('data: begun');
  const asked = await caller.cancel(runId);
  expect(asked.status).toBe(202);
  expect(body(asked)).toEqual({ run_id: runId, status: 'running' });
  const [last, ...more] = await events.rest();
  expect(last).toMatch(/^event: error\ndata: {"run_id":"[^"]+","error":{"code":"cancelled"/);
  expect(more).toEqual([]);
  expect(await fileSays(mark('tidied'))).toBe('tidied');
  expect(await caller.ended(runId)).toMatchObject({ status: 'cancelled', items: 1, error: { code: 'cancelled' } });
  expect(await lookUp(runId)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
});

test('a caller that waits for the answer of a cancelled run gets 499 and the envelope', async () => {
  const waiting = caller.call('streams/waits', { gate: mark('never'), started: mark('waiting') });
  const runId = await fileSays(mark('waiting'));
  expect((await caller.cancel(runId)).status).toBe(202);
  const answer = await waiting;
  expect(answer.status).toBe(499);
  expect(body(answer)).toMatchObject({ run_id: runId, status: 'cancelled', error: { code: 'cancelled' } });
});

test('repeated and concurrent requests cancel the run once', async () => {
  const started = mark('twice');
  await caller.call('streams/waits', { gate: mark('never'), started }, { query: '?async=true' });
  const runId = await fileSays(started);
  const answers = await Promise.all([1, 2, 3].map(() => caller.cancel(runId)));
  for (const { status } of answers) expect([202, 409]).toContain(status);
  expect(answers[0]?.status).toBe(202);
  expect((await caller.ended(runId)).status).toBe('cancelled');
});

test('the cancel of an ended run is 409, and the outcome does not change', async () => {
  const runId = runOf(await caller.call('streams/value', { value: 1 }));
  const answer = await caller.cancel(runId);
  expect(answer.status).toBe(409);
  expect(body(answer)).toMatchObject({ run_id: runId, error: { code: 'conflict', retryable: false } });
  expect((await caller.lookUp(runId)).status).toBe('succeeded');
});

test.each(['0199c0de-0000-7000-8000-000000000000', 'no-run', '..'])('the cancel of %s is 404', async (runId) => {
  const answer = await caller.cancel(runId);
  expect(answer.status).toBe(404);
  expect(errorOf(answer).code).toBe('not_found');
});

test('the cancel of another project’s run is 404, and the run continues', async () => {
  const started = mark('ours');
  const gate = mark('ours-gate');
  await caller.call('streams/waits', { gate, started }, { query: '?async=true' });
  const runId = await fileSays(started);
  const other = new Caller(stack.port, stack.jwtSecret, 'other');
  expect((await other.cancel(runId)).status).toBe(404);
  expect((await other.request(`${caller.path}/runs/${runId}/cancel`)).status).toBe(403);
  await writeFile(gate, '');
  expect((await caller.ended(runId)).status).toBe('succeeded');
});

test('a cancel requires the scope runs:write and the method POST', async () => {
  const runId = runOf(await caller.call('streams/value', { value: 1 }));
  const scoped = (scope: string) => new Caller(stack.port, stack.jwtSecret, caller.project, { scope }).cancel(runId);
  expect((await scoped('call runs:read')).status).toBe(403);
  expect((await scoped('runs:write')).status).toBe(409);
  const got = await caller.request(`${caller.path}/runs/${runId}/cancel`, { method: 'GET' });
  expect([got.status, got.headers.allow]).toEqual([405, 'POST']);
});
