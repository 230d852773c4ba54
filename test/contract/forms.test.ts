// Contract 1, "Body": forms as bodies of calls, and the limit of an app's bodies.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

// The shared stack limits bodies to less than a spooled file.
let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  stack = await startTestStack();
  caller = new Caller(stack.port, stack.jwtSecret);
  await Promise.all(['forms', 'streams'].map((app) => caller.ready(app)));
});
afterAll(() => stack?.stop());

type Entry = readonly [name: string, value: string | Blob];

async function send(fn: string, entries: readonly Entry[], headers: Record<string, string> = {}): Promise<Answer> {
  const data = new FormData();
  for (const [name, value] of entries) {
    if (typeof value === 'string') data.append(name, value);
    else data.append(name, value, 'file.bin');
  }
  const request = new Request('http://localhost', { method: 'POST', body: data });
  const body = Buffer.from(await request.arrayBuffer());
  const type = request.headers.get('content-type') as string;
  return caller.request(`${caller.path}/${fn}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': type },
    body,
  });
}

const result = (answer: Answer): unknown => (JSON.parse(answer.text) as { result: unknown }).result;
const file = (size: number): Blob => new Blob([Buffer.alloc(size, 0xff)]);

test('files arrive as bytes, and texts as their types', async () => {
  const answer = await send('forms/sizes', [
    ['files', file(10)],
    ['files', file(100_000)],
    ['n', '7'],
  ]);
  expect(result(answer)).toEqual([[10, 100_000], 7]);
});

test('a large file is on disk during the run, and removed at its end', async () => {
  const answer = await send('forms/spooled', [['file', file(2_000_000)]]);
  const { pid, ...rest } = result(answer) as { pid: number };
  expect(rest).toEqual({ size: 2_000_000, listed: false });
  expect(result(await caller.call('forms/open_files', { pid }))).toBe(0);
});

test('a form that violates the schema returns 422 and creates no run', async () => {
  const answer = await send('forms/number', [['n', 'many']]);
  expect(answer.status).toBe(422);
  expect(JSON.parse(answer.text)).toMatchObject({
    error: { code: 'invalid_input', details: [{ loc: ['body', 'n'], type: 'int_type' }] },
  });
  expect(
    (await caller.request(`${caller.path}/runs/${answer.headers['x-request-id']}`, { method: 'GET' })).status,
  ).toBe(404);
});

test('a repeated form with another boundary joins its run, and another form is a conflict', async () => {
  const headers = { 'idempotency-key': 'a-form' };
  const first = await send('forms/number', [['n', '1']], headers);
  const again = await send('forms/number', [['n', '1']], headers);
  expect(again.headers['x-request-id']).toBe(first.headers['x-request-id']);
  expect(again.headers['idempotency-replayed']).toBe('true');
  expect(errorOf(await send('forms/number', [['n', '2']], headers)).code).toBe('idempotency_conflict');
});

test.each([
  ['without a boundary', 'multipart/form-data', '--b\r\n', 400, 'invalid_request'],
  [
    'that ends early',
    'multipart/form-data; boundary=b',
    '--b\r\nContent-Disposition: form-data; name="n"\r\n\r\n1',
    400,
    'invalid_request',
  ],
  ['of another type', 'text/plain', 'n=1', 415, 'unsupported_media_type'],
])('a form %s returns %s', async (_, type, body, status, code) => {
  const answer = await caller.request(`${caller.path}/forms/number`, {
    method: 'POST',
    headers: { 'content-type': type },
    body,
  });
  expect([answer.status, errorOf(answer).code]).toEqual([status, code]);
});

test('a form on an OpenAI path returns 415', async () => {
  expect((await send('forms/number/chat/completions', [['n', '1']])).status).toBe(415);
});

test('a body over the limit of its app returns 413, and other apps take it', async () => {
  const large = JSON.stringify({ value: 'x'.repeat(3_000_000) });
  const answer = await caller.request(`${caller.path}/forms/number`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: large,
  });
  expect([answer.status, errorOf(answer).code]).toEqual([413, 'payload_too_large']);
  expect(errorOf(answer).message).toContain('3000000');
  expect((await caller.call('streams/value', large)).status).toBe(200);
});
