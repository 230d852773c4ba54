// Contract 1: `Prefer` and `onDisconnect` over the whole stack. apps/gateway/src/calls/combinations.test.ts tests every combination of docs/runs.md.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import type { Answer } from '../client/http.ts';
import { opening } from '../client/streams.ts';
import { fileSays, until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await joinSharedStack('prefer', ['streams']);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await sink.close();
});

const mark = (name: string): string => join(stack.marksDir, name);
const runOf = (answer: Answer): string => String(answer.headers['x-request-id']);
/** Whether the gateway has noticed the disconnect of a run's caller: it has logged the call. */
const gone = (runId: string): boolean =>
  stack
    .logs()
    .split('\n')
    .some((line) => line.includes(runId) && line.includes('"gone"'));

test('a caller with `wait=N` gets 202 after N seconds; the look-up and the webhook have the answer later', async () => {
  const params = { gate: mark('wait-gate'), started: mark('wait') };
  const query = `?webhookEndpoint=${encodeURIComponent(sink.url)}`;
  const answer = await caller.call('streams/waits', params, { query, headers: { prefer: 'wait=1' } });
  expect(answer).toMatchObject({ status: 202, text: JSON.stringify({ run_id: runOf(answer) }) });
  expect(answer.headers).toMatchObject({
    location: `${caller.path}/runs/${runOf(answer)}`,
    'preference-applied': 'wait=1',
    'content-type': 'application/json; charset=utf-8',
  });
  expect((await caller.lookUp(runOf(answer))).status).toBe('running');
  await writeFile(params.gate, '');
  expect(await caller.ended(runOf(answer))).toMatchObject({ status: 'succeeded', result: 'waited' });
  const delivery = await until(() => sink.requests[0]);
  expect(JSON.parse(`${delivery.body}`)).toMatchObject({ run_id: runOf(answer), result: 'waited' });
});

test('a run that ends within the wait is answered, a failed run too', async () => {
  const headers = { prefer: 'respond-async, wait=50' };
  expect((await caller.call('streams/value', { value: 1 }, { headers })).status).toBe(200);
  expect((await caller.call('streams/raises', {}, { headers })).status).toBe(500);
  expect((await caller.call('streams/value', { other: 1 }, { headers })).status).toBe(422);
});

test('a stream that begins within the wait continues to its end; a later stream is 202 and can be read afterwards', async () => {
  const [folder, closed] = [mark('in-time'), mark('late')];
  await Promise.all([folder, closed].map((path) => mkdir(path)));
  await writeFile(join(folder, '0'), '');
  const prefer = 'wait=5';
  const { answer, events } = await caller.stream('streams/gated', { folder, n: 2 }, { headers: { prefer } });
  expect(answer.statusCode).toBe(200);
  expect(await events.next()).toBe('data: item 0');
  const late = await caller.call(
    'streams/gated',
    { folder: closed, n: 1 },
    { headers: { prefer, accept: 'text/event-stream' } },
  );
  expect(late.status).toBe(202);
  // The wait of the first stream, which began earlier, is over, too.
  await writeFile(join(folder, '1'), '');
  expect(await events.rest()).toEqual(['data: item 1']);
  await writeFile(join(closed, '0'), '');
  const stream = await caller.request(`${caller.path}/runs/${runOf(late)}/stream`, { method: 'GET' });
  expect(stream.text).toBe(`${opening(0)}id: 1\ndata: item 0\n\n`);
});

test('a run with onDisconnect=continue keeps running after its caller disconnects', async () => {
  const params = { gate: mark('continue-gate'), started: mark('continue') };
  const controller = new AbortController();
  const path = `${caller.path}/streams/waits?onDisconnect=continue`;
  caller.open(path, { body: JSON.stringify(params), signal: controller.signal }).catch(() => {});
  const runId = await fileSays(params.started);
  controller.abort();
  await until(() => gone(runId));
  expect((await caller.lookUp(runId)).status).toBe('running');
  await writeFile(params.gate, '');
  expect(await caller.ended(runId)).toMatchObject({ status: 'succeeded', result: 'waited' });
});

test('a run with onDisconnect=1 is cancelled one second after its last reader disconnects, and never while it has a reader', async () => {
  const query = '?onDisconnect=1';
  const { events, runId } = await caller.stream('streams/tidy', { mark: mark('absent') }, { query });
  const unread = await caller.stream('streams/tidy', { mark: mark('unread') }, { query });
  for (const stream of [events, unread.events]) expect(await stream.next()).toBe('data: begun');
  const reader = await caller.open(`${caller.path}/runs/${runId}/stream`, { method: 'GET' });
  events.leave();
  await until(() => gone(runId));
  // The caller of the other run disconnects later. When that run is cancelled, more than a second has passed for both.
  unread.events.leave();
  expect((await caller.ended(unread.runId)).status).toBe('cancelled');
  expect((await caller.lookUp(runId)).status).toBe('running');
  const left = Date.now();
  reader.on('error', () => {}).destroy();
  const ended = await caller.ended(runId);
  expect(ended.status).toBe('cancelled');
  expect(Date.parse(String(ended.ended_at)) - left).toBeGreaterThanOrEqual(900);
  expect(await fileSays(mark('absent'))).toBe('tidied');
});

test('a run with async=true and onDisconnect=1 is cancelled unless a reader connects', async () => {
  const query = '?async=true&onDisconnect=1';
  const runId = runOf(await caller.call('streams/tidy', { mark: mark('nobody') }, { query }));
  expect((await caller.ended(runId)).status).toBe('cancelled');
  expect(await fileSays(mark('nobody'))).toBe('tidied');
});
