// Contract 2, "HTTP status of a result": JavaScript functions that return a `Response`.
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await joinSharedStack('responses', ['responses']);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await sink.close();
});

const post = (fn: string, params: object = {}, query = '', headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${caller.port}${caller.path}/responses/${fn}${query}`, {
    method: 'POST',
    headers: { authorization: caller.bearer, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });

const runOf = (response: Response): string => response.headers.get('x-request-id') as string;
const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

const HTML = 'text/html; charset=utf-8';
const PAGE = '<p>größe</p>\n';
const IMAGE = Buffer.alloc(512, '\xff\n', 'latin1');
const EVENTS = 'event: a\ndata: 1\n\ndata: 2\n\n';
const LINES = '{"a":1}\n{"a":2}\n';

test.each([
  ['page', {}, 200, HTML, PAGE],
  ['page', { status: 500 }, 500, HTML, PAGE],
  ['image', {}, 200, 'image/png', IMAGE],
  ['image', { size: 300_000 }, 200, 'image/png', Buffer.alloc(300_000, '\xff\n', 'latin1')],
  ['created', {}, 201, 'application/json', '{"id":1}'],
  ['missing', {}, 404, 'application/problem+json', '{"title":"no such thing"}'],
  ['nothing', {}, 204, null, ''],
  ['events', {}, 200, 'text/event-stream', EVENTS],
  ['lines', {}, 200, 'application/x-ndjson', LINES],
])('%s with %j is answered with its status, type and body', async (fn, params, status, type, body) => {
  const answer = await post(fn, params);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([status, type]);
  expect(await bytesOf(answer)).toEqual(Buffer.from(body));
});

test.each([
  ['page', 200, HTML, PAGE],
  ['image', 200, 'image/png', IMAGE.toString('base64')],
  ['created', 201, 'application/json', { id: 1 }],
  ['missing', 404, 'application/problem+json', { title: 'no such thing' }],
  ['lines', 200, 'application/x-ndjson', [{ a: 1 }, { a: 2 }]],
])('the webhook and the look-up of %s have its status, type and value', async (fn, status, type, result) => {
  const url = `http://127.0.0.1:${sink.port}/${fn}`;
  const runId = runOf(await post(fn, {}, `?webhookEndpoint=${encodeURIComponent(url)}`));
  const expected = { run_id: runId, status: 'succeeded', status_code: status, content_type: type, result };
  const delivery = await until(() => sink.requests.find(({ path }) => path === `/${fn}`));
  expect(JSON.parse(`${delivery.body}`)).toMatchObject(expected);
  expect(await caller.lookUp(runId)).toMatchObject(expected);
});

test('a piece of the body arrives while the function runs', async () => {
  const path = join(tmpdir(), `response-${process.pid}-${Date.now()}`);
  const { body } = await post('waits', { path });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('first');
  await writeFile(path, '');
  expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('second');
  expect((await reader.read()).done).toBe(true);
});

test('a repeated call has the same answer', async () => {
  for (const [fn, expected] of [
    ['image', IMAGE],
    ['created', '{"id":1}'],
  ] as const) {
    const headers = { 'idempotency-key': fn };
    expect(await bytesOf(await post(fn, {}, '', headers))).toEqual(Buffer.from(expected));
    const again = await post(fn, {}, '', headers);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(again.status).toBe(fn === 'created' ? 201 : 200);
    expect(await bytesOf(again)).toEqual(Buffer.from(expected));
  }
});

test('a caller of a stream receives the parts of a body as events, which can be resumed', async () => {
  const accept = { accept: 'text/event-stream' };
  const page = await post('page', {}, '?ids=true&onDisconnect=continue', accept);
  expect(await page.text()).toBe('retry: 1000\nid: 0\n\nid: 1\ndata: <p>größe</p>\ndata: \n\n');
  const { text } = await caller.request(`${caller.path}/runs/${runOf(page)}/stream`, { method: 'GET' });
  expect(text).toContain('data: <p>größe</p>');
  expect(await (await post('created', {}, '', accept)).text()).toBe('data: {"id":1}\n\n');
  expect(await (await post('image', { size: 2 }, '', accept)).text()).toBe('data: /wo=\n\n');
  expect(await (await post('events', {}, '', accept)).text()).toBe(EVENTS);
});

test('a preference to wait is over when the body begins', async () => {
  const answer = await post('image', {}, '', { prefer: 'wait=60' });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
  const later = await post('image', {}, '?async=true');
  expect(later.status).toBe(202);
  expect(await caller.ended(runOf(later))).toMatchObject({ content_type: 'image/png', status_code: 200 });
});

test('a failure before the first byte is an error with its status', async () => {
  const answer = await post('breaks', { at: 0 });
  expect(answer.status).toBe(500);
  expect(await answer.json()).toMatchObject({ status: 'failed', error: { code: 'function_error', message: 'broken' } });
});

test('a failure after the first byte breaks the answer off', async () => {
  const answer = await post('breaks', { at: 2 });
  expect(answer.status).toBe(200);
  await expect(bytesOf(answer)).rejects.toThrow();
  expect(await caller.ended(runOf(answer))).toMatchObject({ status: 'failed', error: { code: 'function_error' } });
});

test('on the paths for OpenAI clients, the value of a Response is the bare answer', async () => {
  const answer = await post('created/responses');
  expect([answer.status, await answer.json()]).toEqual([201, { id: 1 }]);
});
