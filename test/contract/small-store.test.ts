// Contract 2 and 9: a full run store, and a project's share of the store. A stack of its own, because the store is small.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

/** Each of the two projects has half of these bytes. */
const RUN_STORE_MAX_BYTES = 400_000;

let stack: TestStack;
let greedy: Caller;
let modest: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await startTestStack({
    env: {
      WORKER_APPS: 'demo/streams,other/hello',
      RUN_STORE_MAX_BYTES: `${RUN_STORE_MAX_BYTES}`,
      REAP_MS: '100',
    },
  });
  greedy = new Caller(stack.port, stack.jwtSecret);
  modest = new Caller(stack.port, stack.jwtSecret, 'other');
  await greedy.ready('streams');
  await modest.ready('hello');
});
afterAll(async () => {
  await stack.stop();
  await sink.close();
});

const runOf = (answer: Answer): string => String(answer.headers['x-request-id']);

test('a run beyond its project’s share is output_too_large for caller and receiver, and the other project is served', async () => {
  const query = `?webhookEndpoint=${encodeURIComponent(sink.url)}`;
  const answer = await greedy.call('streams/resumable', { n: 60, size: 5_000, seconds: 0 }, { query });
  expect(answer.status).toBe(500);
  expect(errorOf(answer)).toMatchObject({
    code: 'output_too_large',
    retryable: false,
    message: expect.stringContaining('share'),
  });
  const runId = runOf(answer);
  const delivered = await until(() => sink.requests.find(({ headers }) => headers['x-request-id'] === runId));
  expect(delivered.body.toString()).toBe(answer.text);
  const record = await greedy.lookUp(runId);
  expect(record).toMatchObject({ status: 'failed', error: { code: 'output_too_large' } });
  const { text } = await greedy.request(`/v4/demo/runs/${runId}/stream`, { method: 'GET' });
  // The failure is also an event.
  expect(text.match(/^id: [1-9]/gm)).toHaveLength(record.items + 1);
  for (const method of ['', '?async=true'])
    expect((await modest.call('hello/greet', { name: 'Ada' }, { query: method })).status).toBe(method ? 202 : 200);
});

test('a call is 429 with Retry-After if promised runs fill the store, and the promised runs stay', async () => {
  const promised: string[] = [];
  const refused = await until(async () => {
    const answer = await modest.call('hello/greet', { name: 'x'.repeat(2000) }, { query: '?async=true' });
    if (answer.status === 429) return answer;
    expect(answer.status).toBe(202);
    promised.push(runOf(answer));
    // The store counts the bytes of a run when the run has ended.
    await modest.ended(runOf(answer));
    return false;
  });
  expect(errorOf(refused)).toMatchObject({
    code: 'overloaded',
    retryable: true,
    message: expect.stringContaining('store'),
  });
  expect(Number(refused.headers['retry-after'])).toBe(5);
  expect(promised.length).toBeGreaterThan(10);
  for (const runId of promised) expect((await modest.lookUp(runId)).status).toBe('succeeded');
});
