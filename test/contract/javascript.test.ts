// Contract 1: an app in TypeScript over the whole stack. The example `words` has types, streams, a cancel, webhooks and OpenAI paths.
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot, signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import type { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'words-'));
  const words = join(folder, 'words');
  await cp(join(projectRoot(), 'examples/demo/words'), words, { recursive: true });
  await mkdir(join(words, 'node_modules'), { recursive: true });
  await symlink(join(projectRoot(), 'node_modules/zod'), join(words, 'node_modules/zod'));
  stack = await joinSharedStack('javascript', [words]);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack.leave();
  await rm(folder, { recursive: true, force: true });
});

test('a call returns the result of a TypeScript function', async () => {
  const { status, text } = await caller.call('words/count', { text: 'A rose is a rose.' });
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ status: 'succeeded', result: { a: 2, rose: 2, is: 1 } });
});

test('the gateway rejects parameters that the schema excludes, and the app announces the schema', async () => {
  const { status, text } = await caller.call('words/spell', { delay_ms: 'soon' });
  expect(status).toBe(422);
  expect(JSON.parse(text).error).toMatchObject({
    code: 'invalid_input',
    details: expect.arrayContaining([
      { loc: ['body', 'text'], msg: 'Field required', type: 'missing' },
      { loc: ['body', 'delay_ms'], msg: 'Input should be a valid integer', type: 'int_type' },
    ]),
  });
  const { text: apps } = await caller.request(caller.path, { method: 'GET' });
  const [app] = (JSON.parse(apps) as { apps: { functions: { name: string; doc?: string }[] }[] }).apps;
  expect(app?.functions.find(({ name }) => name === 'spell')).toMatchObject({
    doc: 'Yields a text word by word.',
    parameters: [
      { name: 'text', required: true },
      { name: 'delay_ms', required: false, default: 200 },
    ],
  });
});

test('a stream is sent word by word, and a webhook has its words', async () => {
  const sink = await receiver(() => ({ status: 204 }));
  const query = `?webhookEndpoint=${encodeURIComponent(sink.url)}`;
  const { text } = await caller.call('words/spell', { text: 'one two three', delay_ms: 0 }, { query });
  const { body } = await until(() => sink.requests[0]);
  expect(body.toString()).toBe(text);
  expect(JSON.parse(text)).toMatchObject({ status: 'succeeded', result: ['one', 'two', 'three'] });
  await sink.close();
});

test('a disconnect aborts the signal, and the generator cleans up', async () => {
  const { answer, events, runId } = await caller.stream('words/spell', { text: 'one two', delay_ms: 10_000 });
  expect(await events.next()).toBe('data: one');
  answer.destroy();
  expect((await caller.ended(runId)).status).toBe('cancelled');
  const { text } = await caller.request(`${caller.path}/runs/${runId}/logs`, { method: 'GET' });
  expect(JSON.parse(text).logs).toMatchObject([{ text: 'sent 1 of 2 words' }]);
});

test('OpenAI’s client completes and streams a chat', async () => {
  const apiKey = signToken(stack.jwtSecret, { project: 'javascript', ttlS: 60 });
  const client = new OpenAI({
    apiKey,
    baseURL: `http://127.0.0.1:${stack.port}${caller.path}/words/chat`,
    maxRetries: 0,
  });
  const messages = [{ role: 'user' as const, content: 'hello there' }];
  const whole = await client.chat.completions.create({ model: 'echo', messages });
  expect(whole.choices[0]?.message.content).toBe('hello there');
  let text = '';
  for await (const { choices } of await client.chat.completions.create({ model: 'echo', messages, stream: true }))
    text += choices[0]?.delta.content ?? '';
  expect(text).toBe('hello there');
});
