// Contract 1, "OpenAI clients": the official client against the example app, whole stack.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { Caller } from '../client/caller.ts';
import { projectRoot } from '../stack/folders.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { signToken } from '../stack/tokens.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack({ apps: join(projectRoot(), 'examples'), env: { WORKER_APPS: 'demo/language' } });
  await new Caller(stack.port, stack.jwtSecret).ready('language');
});
afterAll(() => stack.stop());

/** A client whose base URL is this function. */
const client = (fn: string, apiKey = signToken(stack.jwtSecret, { project: 'demo', ttlS: 60 })) =>
  new OpenAI({ apiKey, baseURL: `http://127.0.0.1:${stack.port}/v4/demo/language/${fn}`, maxRetries: 0 });

const messages = [{ role: 'user' as const, content: 'the gateway' }];

test('a chat is completed', async () => {
  const answer = await client('chat').chat.completions.create({ model: 'bigram', messages, user: 'dropped' });
  expect(answer.object).toBe('chat.completion');
  expect(answer.choices[0]?.message.content).toMatch(/\w/);
  expect(answer.id).toBe(`chatcmpl-${answer._request_id}`);
});

test('a chat is streamed as the same words, to its end', async () => {
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

test('a text is completed, whole and streamed', async () => {
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

test('a response is made, whole and streamed', async () => {
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
  expect(data).toEqual([{ id: 'chat', object: 'model', created: 0, owned_by: 'demo/language' }]);
});

test('errors are the client’s own', async () => {
  await expect(client('chat', 'no token').models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  await expect(client('nothing').models.list()).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  const refused = client('chat').chat.completions.create({ model: 'm' } as never);
  await expect(refused).rejects.toMatchObject({ status: 422, code: 'invalid_input', param: 'messages' });
  const raised = client('embed').embeddings.create({ model: 'm', input: 'x', encoding_format: 'hex' as never });
  await expect(raised).rejects.toMatchObject({ status: 500, code: 'function_error', type: 'ValueError', param: null });
});
