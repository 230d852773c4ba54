// Contract 2, "HTTP status of a result": functions that declare a media type.
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Caller } from '../client/caller.ts';
import { errorOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await joinSharedStack('media', ['media']);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await sink.close();
});

interface Answered {
  readonly status: number;
  readonly type: string | null;
  readonly runId: string;
  readonly response: Response;
}

async function post(fn: string, params: object, query = '', headers: Record<string, string> = {}): Promise<Answered> {
  const response = await fetch(`http://127.0.0.1:${caller.port}${caller.path}/media/${fn}${query}`, {
    method: 'POST',
    headers: { authorization: caller.bearer, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });
  const { status, headers: got } = response;
  return { status, type: got.get('content-type'), runId: got.get('x-request-id') as string, response };
}

const bytesOf = async ({ response }: Answered): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

/** The bytes of `image`. */
const IMAGE = Buffer.alloc(512, Buffer.from(Array.from({ length: 256 }, (_, at) => at)));
const SOUND = Buffer.from([0, 0xff, 10, 13, 1, 0xff, 10, 13]);

test.each([
  ['image', { size: 512 }, 'image/png', IMAGE],
  ['sound', { pieces: 2 }, 'audio/mpeg', SOUND],
  ['video', { pieces: 2 }, 'video/mp4', Buffer.from([0, 0, 1, 0])],
  ['sound', { pieces: 0 }, 'audio/mpeg', Buffer.alloc(0)],
])('%s with %j is answered with its bytes', async (fn, params, type, bytes) => {
  const answer = await post(fn, params);
  expect([answer.status, answer.type]).toEqual([200, type]);
  expect(await bytesOf(answer)).toEqual(bytes);
});

test('a large body arrives whole', async () => {
  expect((await bytesOf(await post('image', { size: 150_016 }))).length).toBe(150_016);
});

test('a piece arrives while the function runs', async () => {
  const path = join(tmpdir(), `piece-${process.pid}-${Date.now()}`);
  const { response } = await post('waits', { path });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('first');
  await writeFile(path, '');
  expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('second');
});

test.each([
  ['image', { size: 512 }, 'image/png', IMAGE],
  ['sound', { pieces: 2 }, 'audio/mpeg', SOUND],
])('the webhook and the look-up of %s have base64 and the content type', async (fn, params, type, bytes) => {
  const url = `http://127.0.0.1:${sink.port}/${fn}`;
  const answer = await post(fn, params, `?webhookEndpoint=${encodeURIComponent(url)}`);
  expect(await bytesOf(answer)).toEqual(bytes);
  const expected = { status: 'succeeded', content_type: type, result: bytes.toString('base64') };
  expect(await caller.lookUp(answer.runId)).toMatchObject(expected);
  const delivery = await until(() => sink.requests.find(({ path }) => path === `/${fn}`));
  expect(JSON.parse(`${delivery.body}`)).toMatchObject({ run_id: answer.runId, ...expected });
});

test('an asynchronous call is looked up', async () => {
  const { status, runId } = await post('image', { size: 256 }, '?async=true');
  expect(status).toBe(202);
  expect(await caller.ended(runId)).toMatchObject({ content_type: 'image/png', status_code: 200 });
});

test('a repeated call has the same bytes', async () => {
  const headers = { 'idempotency-key': 'bytes' };
  await bytesOf(await post('sound', { pieces: 2 }, '', headers));
  const again = await post('sound', { pieces: 2 }, '', headers);
  expect(again.response.headers.get('idempotency-replayed')).toBe('true');
  expect(again.type).toBe('audio/mpeg');
  expect(await bytesOf(again)).toEqual(SOUND);
});

test('events have each piece in base64', async () => {
  const answer = await post('sound', { pieces: 2 }, '', { accept: 'text/event-stream' });
  expect(await answer.response.text()).toBe('data: AP8KDQ==\n\ndata: Af8KDQ==\n\n');
});

test('a value that is not bytes is answered with the envelope', async () => {
  const answer = await post('other', {});
  expect(answer.status).toBe(404);
  expect(await answer.response.json()).toMatchObject({ status: 'succeeded', result: { detail: 'no image' } });
});

test('a failure before the first byte is an error with its status', async () => {
  const answer = await post('breaks', { at: 0 });
  expect(answer.status).toBe(500);
  expect(await answer.response.json()).toMatchObject({ error: { code: 'function_error' } });
  expect(errorOf(await caller.call('media/wrong')).code).toBe('unserializable_output');
});

test('a failure after the first byte breaks the answer off', async () => {
  const answer = await post('breaks', { at: 2 });
  await expect(bytesOf(answer)).rejects.toThrow();
  expect(await caller.ended(answer.runId)).toMatchObject({ status: 'failed', error: { code: 'function_error' } });
});
