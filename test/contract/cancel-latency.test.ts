// Contract 5, cancel, by what the function does just then: it is interrupted, its `finally` blocks run, and what obeys nothing is replaced.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

/** `cancel_grace` of the app `stubborn`. That of `interrupted` is longer than a test may take: what ends there was interrupted. */
const GRACE_MS = 1_000;

let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/interrupted,demo/stubborn' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  await Promise.all(['interrupted', 'stubborn'].map((app) => caller.ready(app)));
});
afterAll(() => stack.stop());

async function textsOf(runId: string): Promise<string[]> {
  const { text } = await caller.request(`/v4/demo/runs/${runId}/logs`, { method: 'GET' });
  return (JSON.parse(text) as { logs: { text: string }[] }).logs.map((line) => line.text);
}

/** Starts it as a promised run; resolves when its function has begun. */
async function begun(fn: string, params: object = {}): Promise<string> {
  const answer = await caller.call(fn, params, { query: '?async=true' });
  const runId = String(answer.headers['x-request-id']);
  await until(async () => (await textsOf(runId)).includes('begun'));
  return runId;
}

/** Milliseconds from the request to the run's end, by the service's own clock where it can. */
async function cancelled(runId: string): Promise<number> {
  const startedAt = performance.now();
  expect((await caller.cancel(runId)).status).toBe(202);
  expect(await caller.ended(runId)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
  return performance.now() - startedAt;
}

test.each(['sleeps', 'loops', 'computes', 'awaits', 'yields_async', 'yields'])(
  'a function that %s is interrupted at once, and its finally block runs',
  async (fn) => {
    for (let round = 0; round < 5; round++) {
      const runId = await begun(`interrupted/${fn}`);
      await cancelled(runId);
      expect(await textsOf(runId)).toEqual(['begun', 'tidied']);
    }
  },
);

test('a generator that waits for its reader is interrupted too', async () => {
  const { runId, events } = await caller.stream('interrupted/yields');
  expect(await events.next()).toBe('data: item');
  // Nothing more is read: the window and the sockets fill, and the generator stands.
  const items = async (): Promise<number> => (await caller.lookUp(runId)).items;
  let before = -1;
  await until(async () => {
    const now = await items();
    const stands = now === before;
    before = now;
    return stands;
  }, 500);
  await cancelled(runId);
  expect(await textsOf(runId)).toEqual(['begun', 'tidied']);
  events.leave();
});

test('one in a C call is given up after the grace; its neighbour ends well in the old process, new calls go to a new one', async () => {
  const pid = async (): Promise<unknown> => JSON.parse((await caller.call('stubborn/pid')).text).result;
  const before = await pid();
  const gate = join(stack.marksDir, 'gate');
  const [stuck, neighbour] = [await begun('stubborn/blocks'), await begun('stubborn/waits', { gate })];
  expect(await cancelled(stuck)).toBeGreaterThan(GRACE_MS * 0.9);
  expect(await pid()).not.toBe(before);
  expect((await caller.lookUp(neighbour)).status).toBe('running');
  await writeFile(gate, '');
  expect(await caller.ended(neighbour)).toMatchObject({ status: 'succeeded', result: 'waited' });
  expect(await textsOf(stuck)).toEqual(['begun']);
});

test('one that catches everything is given up after the grace', async () => {
  const runId = await begun('stubborn/refuses');
  expect(await cancelled(runId)).toBeGreaterThan(GRACE_MS * 0.9);
  expect(await textsOf(runId)).toEqual(['begun', 'refused']);
});

test('a process that is killed for memory fails its run as out_of_memory, and is replaced', async () => {
  const runId = await begun('interrupted/killed');
  expect(await caller.ended(runId)).toMatchObject({ status: 'failed', error: { code: 'out_of_memory' } });
  expect((await caller.call('interrupted/pid')).status).toBe(200);
});
