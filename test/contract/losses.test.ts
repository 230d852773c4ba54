// Contract 2, 4 and 5: a service or Redis dies by SIGKILL or stops answering. Callers get errors or their results, and the service recovers
// without help. A stack of its own, because other files cannot use a stack whose parts die.
import { readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { redisAddress } from '@inference-proxy/platform';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Webhook } from 'standardwebhooks';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { fileSays, until } from '../client/until.ts';
import { watch } from '../client/watch.ts';
import { flushed } from '../faults/flushed.ts';
import { receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

// A lease is 15 s by default. A lease of 8 s shortens these tests and does not expire on a busy machine.
let stack: TestStack;
let caller: Caller;
let redis: Redis;
beforeAll(async () => {
  stack = await startTestStack({
    env: {
      WORKER_APPS: 'demo/streams,demo/changing',
      LEASE_MS: '8000',
      LEASE_RENEW_MS: '500',
      ATTEND_MS: '500',
      // The lease of a delivery's attempt is the sum of these limits.
      WEBHOOK_TIMEOUT_S: '3',
      WEBHOOK_RECORD_S: '3',
    },
  });
  caller = new Caller(stack.port, stack.jwtSecret);
  redis = new Redis({ ...redisAddress(stack.redisUrl), maxRetriesPerRequest: null });
  redis.on('error', () => {});
  await Promise.all([caller.ready('streams'), caller.ready('changing')]);
});
afterAll(async () => {
  redis.disconnect();
  await stack.stop();
});

const mark = (name: string): string => join(stack.marksDir, name);
const runOf = (answer: Pick<Answer, 'headers'>): string => String(answer.headers['x-request-id']);

/** Resolves when a call is answered with 200. */
const works = (): Promise<true> =>
  until(async () => {
    const answer = await caller.call('streams/value', { value: 'works' }).catch(() => undefined);
    return answer?.status === 200;
  });

test('if a worker is killed, its streams end with worker_lost, its calls are 502, and new calls work', async () => {
  const waiting = caller.call('streams/waits', { gate: mark('never'), started: mark('waiting') });
  const { events, runId } = await caller.stream('streams/tidy', { mark: mark('tidied') });
  expect(await events.next()).toBe('data: begun');
  const waitingId = await fileSays(mark('waiting'));
  await stack.kill('worker');
  // The stream has only keep-alive comments until the worker's lease expires.
  const [last, ...more] = (await events.rest()).filter((event) => event !== ': keep-alive');
  expect(more).toEqual([]);
  expect(last).toMatch(/^event: error\ndata: /);
  expect(JSON.parse((last ?? '').replace(/^event: error\ndata: /, ''))).toEqual({
    run_id: runId,
    error: { code: 'worker_lost', message: expect.stringMatching(/./), retryable: true },
  });
  const answer = await waiting;
  expect(answer.status).toBe(502);
  expect(errorOf(answer)).toMatchObject({ code: 'worker_lost', retryable: true });
  for (const id of [runId, waitingId])
    expect(await caller.lookUp(id)).toMatchObject({ status: 'failed', error: { code: 'worker_lost' } });
  await works();
});

test('calls wait for the next worker while no worker runs', async () => {
  const back = stack.kill('worker');
  const answers = await Promise.all([1, 2, 3].map((value) => caller.call('streams/value', { value })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  await back;
});

test('if a gateway is killed, its unpromised runs are cancelled and promised runs continue', async () => {
  const { query, gate } = { query: '?async=true', gate: mark('gate') };
  const { events, runId } = await caller.stream('streams/tidy', { mark: mark('tidied-2') });
  expect(await events.next()).toBe('data: begun');
  const promised = await caller.call('streams/waits', { gate, started: mark('promised') }, { query });
  const promisedId = await fileSays(mark('promised'));
  expect(JSON.parse(promised.text)).toEqual({ run_id: promisedId });
  await stack.kill('gateway');
  await expect(events.rest()).rejects.toThrow();
  await works();
  expect(await fileSays(mark('tidied-2'))).toBe('tidied');
  expect(await caller.ended(runId)).toMatchObject({ status: 'cancelled', items: 1 });
  expect(await caller.lookUp(promisedId)).toMatchObject({ status: 'running' });
  await writeFile(gate, '');
  expect(await caller.ended(promisedId)).toMatchObject({ status: 'succeeded', result: 'waited' });
});

test('if Redis is killed, running runs continue, no run is lost, and the service recovers without help', async () => {
  const gate = mark('gate-2');
  const before = runOf(await caller.call('streams/value', { value: 'kept' }));
  await caller.call('streams/waits', { gate, started: mark('through') }, { query: '?async=true' });
  const throughId = await fileSays(mark('through'));
  await flushed(redis);
  await stack.kill('redis');
  await works();
  await writeFile(gate, '');
  expect(await caller.ended(throughId)).toMatchObject({ status: 'succeeded', result: 'waited' });
  expect(await caller.lookUp(before)).toMatchObject({ status: 'succeeded', result: 'kept' });
  const { events } = await caller.stream('streams/decorated', { n: 3 });
  expect(await events.rest()).toEqual(['data: 0', 'data: 1', 'data: 2']);
});

test('an EventSource recovers from the death of a gateway as from a cut', async () => {
  const N = 300;
  const gate = mark('gateway-dies');
  const called = await caller.call(
    'streams/resumable',
    { n: N, size: 20, seconds: 0.01, gate },
    { query: '?async=true' },
  );
  const runId = runOf(called);
  const { ids, closed } = watch(caller, runId, stack.port);
  await until(() => ids.length > 20);
  await stack.kill('gateway');
  expect(ids.length).toBeLessThan(N);
  await writeFile(gate, '');
  expect(await closed).toBe(204);
  expect(ids).toEqual(Array.from({ length: N }, (_, k) => k + 1));
});

test('a delivery whose dispatcher is killed between POST and record is repeated and not lost', async () => {
  const sink = await receiver((_, count) => (count === 1 ? undefined : { status: 204 }));
  const query = `?webhookEndpoint=${encodeURIComponent(sink.url)}`;
  const headers = { 'x-webhook-secret': 'a secret of the caller' };
  const answer = await caller.call('streams/value', { value: 1 }, { query, headers });
  const first = await until(() => sink.requests[0]);
  await stack.kill('dispatcher');
  const second = await until(() => sink.requests[1]);
  expect(second.body).toEqual(first.body);
  expect(second.headers['webhook-id']).toBe(first.headers['webhook-id']);
  new Webhook('a secret of the caller', { format: 'raw' }).verify(
    second.body,
    second.headers as Record<string, string>,
  );
  await until(async () => (await caller.lookUp(runOf(answer))).webhook?.state === 'delivered');
  await sink.close();
});

test('a call that Redis did not answer is 503 with the run’s id; a retry under its key runs once', async () => {
  const params = { mark: mark('unanswered'), gate: mark('unanswered-gate') };
  await writeFile(params.gate, '');
  const options = { headers: { 'idempotency-key': 'unanswered' } };
  stack.pause('redis');
  let answer: Answer;
  try {
    answer = await caller.call('streams/once', params, options);
  } finally {
    stack.resume('redis');
  }
  expect(answer.status).toBe(503);
  expect(JSON.parse(answer.text)).toMatchObject({
    run_id: runOf(answer),
    error: { code: 'unavailable', retryable: true },
  });
  const again = await until(async () => {
    const retried = await caller.call('streams/once', params, options);
    return retried.status !== 503 && retried;
  });
  expect(JSON.parse(again.text)).toMatchObject({ status: 'succeeded', result: 'once' });
  // The store accepted the run at the first attempt or at the retry, but not twice.
  expect(await readFile(params.mark, 'utf8')).toBe('.');
});

test('changed code of an app is loaded; code that cannot be imported is not', async () => {
  const main = join(stack.appsDir, 'demo', 'changing', 'main.py');
  const version = async (): Promise<unknown> => JSON.parse((await caller.call('changing/version')).text).result;
  expect(await version()).toBe(1);
  await writeFile(main, 'def version():\n    return 2\n\n\ndef added():\n    return "added"\n');
  await until(async () => (await version()) === 2);
  expect(JSON.parse((await caller.call('changing/added')).text)).toMatchObject({ result: 'added' });
  await writeFile(main, 'import nothing_of_that_name\n');
  await until(() => stack.logs().includes('nothing_of_that_name'));
  expect(await version()).toBe(2);
  await writeFile(main, 'def version():\n    return 3\n');
  await until(async () => (await version()) === 3);
  expect((await caller.call('changing/added')).status).toBe(404);
  // Two saves within a second leave a file of the same size and the same second.
  await writeFile(main, 'def version():\n    return 4\n');
  const second = Math.floor(Date.now() / 1000);
  await utimes(main, second, second);
  await until(async () => (await version()) === 4);
  await writeFile(main, 'def version():\n    return 5\n');
  await utimes(main, second, second + 0.5);
  await until(async () => (await version()) === 5);
});
