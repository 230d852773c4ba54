// Contract 1, "OpenAI clients": the official client calls the example app over the whole stack.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot, signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import type { Caller } from '../client/caller.ts';
import type { RequestOptions } from '../client/http.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openai-'));
  const chunks = join(folder, 'chunks');
  await mkdir(chunks);
  await writeFile(join(chunks, 'main.py'), 'def items(items):\n    yield from items\n');
  stack = await joinSharedStack('openai', [join(projectRoot(), 'examples', 'demo', 'language'), chunks]);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await rm(folder, { recursive: true, force: true });
});

/** Returns a client whose base URL is this function. */
const client = (fn: string, apiKey = signToken(stack.jwtSecret, { project: 'openai', ttlS: 60 }), app = 'language') =>
  new OpenAI({ apiKey, baseURL: `http://127.0.0.1:${stack.port}${caller.path}/${app}/${fn}`, maxRetries: 0 });

/** Returns a client of the function that yields its parameter `items`. */
const yielding = () => client('items', undefined, 'chunks');

const runsOf = async (fn: string): Promise<number> => {
  const { text } = await caller.request(`${caller.path}/runs?app=language&function=${fn}`, { method: 'GET' });
  return (JSON.parse(text) as { runs: unknown[] }).runs.length;
};

const messages = [{ role: 'user' as const, content: 'the gateway' }];

test('a chat is completed', async () => {
  const answer = await client('chat').chat.completions.create({ model: 'bigram', messages, user: 'dropped' });
  expect(answer.object).toBe('chat.completion');
  expect(answer.choices[0]?.message.content).toMatch(/\w/);
  expect(answer.id).toBe(`chatcmpl-${answer._request_id}`);
});

test('a streamed chat has the same words as a completed chat, and a finish reason', async () => {
  const whole = await client('chat').chat.completions.create({ model: 'bigram', messages, seed: 3 });
  const stream = await client('chat').chat.completions.create({ model: 'bigram', messages, seed: 3, stream: true });
  let text = '';
  let reason: string | null | undefined;
  for await (const { choices } of stream) {
    text += choices[0]?.delta.content ?? '';
    reason = choices[0]?.finish_reason;
  }
  expect(text).toBe(whole.choices[0]?.message.content);
  expect(reason).toBe('stop');
});

test('a text completion has the same text with and without streaming', async () => {
  const asked = { model: 'bigram', prompt: 'a caller', max_tokens: 7 };
  const whole = await client('complete').completions.create(asked);
  expect(whole.usage?.completion_tokens).toBeLessThanOrEqual(7);
  let text = '';
  for await (const { choices } of await client('complete').completions.create({ ...asked, stream: true })) {
    text += choices[0]?.text ?? '';
  }
  expect(text).toBe(whole.choices[0]?.text);
});

test('texts are embedded', async () => {
  const input = ['the gateway takes a call', 'a call the gateway takes', 'words'];
  const { data } = await client('embed').embeddings.create({ model: 'hashed', input });
  const [one, same, other] = data.map(({ embedding }) => embedding) as [number[], number[], number[]];
  const cosine = (a: number[], b: number[]) => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  expect(cosine(one, same)).toBeCloseTo(1);
  expect(cosine(one, other)).toBeLessThan(0.9);
});

test('a response has the same text with and without streaming', async () => {
  const asked = { model: 'bigram', input: 'the worker' };
  const whole = await client('respond').responses.create(asked);
  expect(whole.output_text).toMatch(/\w/);
  let text = '';
  let completed: string | undefined;
  for await (const event of await client('respond').responses.create({ ...asked, stream: true })) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    if (event.type === 'response.completed') completed = event.response.status;
  }
  expect(text).toBe(whole.output_text);
  expect(completed).toBe('completed');
});

test('the models of a function can be listed', async () => {
  const { data } = await client('chat').models.list();
  expect(data).toEqual([{ id: 'chat', object: 'model', created: 0, owned_by: 'openai/language' }]);
});

test('errors are the error classes of the client', async () => {
  await expect(client('chat', 'no token').models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  await expect(client('nothing').models.list()).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  const refused = client('chat').chat.completions.create({ model: 'm' } as never);
  await expect(refused).rejects.toMatchObject({ status: 422, code: 'invalid_input', param: 'messages' });
  const raised = client('embed').embeddings.create({ model: 'm', input: 'x', encoding_format: 'hex' as never });
  await expect(raised).rejects.toMatchObject({ status: 500, code: 'function_error', type: 'ValueError', param: null });
});

test('a response of `responses.stream()` ends as without streaming', async () => {
  const asked = { model: 'bigram', input: 'the worker' };
  const whole = await client('respond').responses.create(asked);
  const stream = client('respond').responses.stream(asked);
  const types: string[] = [];
  let snapshot = '';
  stream.on('event', ({ type }) => types.push(type));
  stream.on('response.output_text.delta', (event) => {
    snapshot = event.snapshot;
  });
  const final = await stream.finalResponse();
  expect(final.output).toMatchObject([
    { type: 'message', content: [{ type: 'output_text', text: whole.output_text }] },
  ]);
  expect(snapshot).toBe(whole.output_text);
  expect(final.usage).toEqual(whole.usage);
  expect(types.filter((type, at) => type !== types[at - 1])).toEqual(
    [
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ].map((name) => `response.${name}`),
  );
});

test('a chat is streamed by `chat.completions.stream()`', async () => {
  const stream = client('chat').chat.completions.stream({ model: 'bigram', messages, seed: 3 });
  const whole = await client('chat').chat.completions.create({ model: 'bigram', messages, seed: 3 });
  expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
});

test('a generator of chunks returns one completion if it is called without `stream`', async () => {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason }],
  });
  const chunks = [chunk({ role: 'assistant', content: 'He' }), chunk({ content: 'llo' }), chunk({}, 'length')];
  for (const items of [
    chunks,
    chunks.map((item) => JSON.stringify(item)),
    [...chunks.map((item) => `data: ${JSON.stringify(item)}\n\n`), 'data: [DONE]\n\n'],
  ]) {
    const answer = await yielding().chat.completions.create({ model: 'm', messages, items } as never);
    expect(answer).toMatchObject({ object: 'chat.completion', id: 'c', model: 'm' });
    expect((answer as OpenAI.ChatCompletion).choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello', refusal: null },
        logprobs: null,
        finish_reason: 'length',
      },
    ]);
  }
  const texts = ['a', 'b'].map((text) => ({ id: 'c', object: 'text_completion', choices: [{ index: 0, text }] }));
  const text = await yielding().completions.create({ model: 'm', prompt: 'x', items: texts } as never);
  expect(text).toMatchObject({ object: 'text_completion', choices: [{ text: 'ab', finish_reason: 'stop' }] });
});

test('only the model of a function can be retrieved', async () => {
  expect(await client('chat').models.retrieve('chat')).toMatchObject({
    id: 'chat',
    object: 'model',
    created: 0,
    owned_by: 'openai/language',
  });
  await expect(client('chat').models.retrieve('org/other')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  await expect(client('nothing').models.retrieve('nothing')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
});

test('a client that retries runs a failing function once', async () => {
  const before = await runsOf('embed');
  const asked = { model: 'm', input: 'x', encoding_format: 'hex' as never };
  // By default, the client retries a call twice.
  const failing = client('embed').withOptions({ maxRetries: 2 }).embeddings.create(asked);
  await expect(failing).rejects.toMatchObject({ status: 500, code: 'function_error' });
  expect(await runsOf('embed')).toBe(before + 1);
});

test('every error answer states whether the client should retry', async () => {
  const path = `${caller.path}/language/embed/embeddings`;
  const body = { input: 'x', encoding_format: 'hex' };
  const retry = async (target: string, options: RequestOptions = {}): Promise<unknown[]> => {
    const { status, headers } = await caller.request(target, { body: JSON.stringify(body), ...options });
    return [status, headers['x-should-retry']];
  };
  expect(await retry(path)).toEqual([500, 'false']);
  expect(await retry(path, { body: JSON.stringify({ ...body, stream: true }) })).toEqual([500, 'false']);
  expect(await retry(path, { body: '{' })).toEqual([400, 'false']);
  expect(await retry(path, { body: '{}' })).toEqual([422, 'false']);
  expect(await retry(path, { headers: { authorization: '' } })).toEqual([401, 'false']);
  expect(await retry(path, { headers: { 'content-type': 'text/plain' } })).toEqual([415, 'false']);
  expect(await retry(path, { method: 'GET', body: '' })).toEqual([405, 'false']);
  expect(await retry(`${caller.path}/language/nothing/chat/completions`)).toEqual([404, 'false']);
  expect(await retry(`${caller.path}/language/chat/models/other`, { method: 'GET', body: '' })).toEqual([404, 'false']);
  expect(await retry(`${caller.path}/language/embed`)).toEqual([500, undefined]);
});
