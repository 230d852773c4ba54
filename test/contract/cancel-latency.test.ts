// Contract 5, "Cancel: `POST /runs/{run_id}/cancel`": a cancel interrupts the function and runs its `finally` blocks. A stuck process is replaced.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

/** `cancel_grace` of `stubborn`. That of `interrupted` exceeds the limit of a test, so a run of `interrupted` that ends was interrupted. */
const GRACE_MS = 1_000;

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('cancel-latency', ['interrupted', 'stubborn']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

async function textsOf(runId: string): Promise<string[]> {
  const { text } = await caller.request(`${caller.path}/runs/${runId}/logs`, { method: 'GET' });
  return (JSON.parse(text) as { logs: { text: string }[] }).logs.map((line) => line.text);
}

/** Starts a promised run. Resolves when its function has begun. */
async function begun(fn: string, params: object = {}): Promise<string> {
  const answer = await caller.call(fn, params, { query: '?async=true' });
  const runId = String(answer.headers['x-request-id']);
  await until(async () => (await textsOf(runId)).includes('begun'));
  return runId;
}

/** Cancels a run. Returns the milliseconds until the run's end. */
async function cancelled(runId: string): Promise<number> {
  const startedAt = performance.now();
  expect((await caller.cancel(runId)).status).toBe(202);
  expect(await caller.ended(runId)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
  return performance.now() - startedAt;
}

test.each(['sleeps', 'loops', 'computes', 'awaits', 'yields_async', 'yields'])(
  'a function that %s is interrupted immediately, and its finally block runs',
  async (fn) => {
    for (let round = 0; round < 5; round++) {
      const runId = await begun(`interrupted/${fn}`);
      await cancelled(runId);
      expect(await textsOf(runId)).toEqual(['begun', 'tidied']);
    }
  },
);

test('a generator that waits for its reader is interrupted', async () => {
  const { runId, events } = await caller.stream('interrupted/yields');
  expect(await events.next()).toBe('data: item');
  // The caller reads nothing more, so the window and the sockets fill, and the generator stops.
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

test('a run in a C call ends after the grace time; its neighbour finishes in the old process, and new calls start in a new process', async () => {
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

test('a run that catches every exception ends after the grace time', async () => {
  const runId = await begun('stubborn/refuses');
  expect(await cancelled(runId)).toBeGreaterThan(GRACE_MS * 0.9);
  expect(await textsOf(runId)).toEqual(['begun', 'refused']);
});

test('a process that is killed for memory fails its run as out_of_memory, and is replaced', async () => {
  const runId = await begun('interrupted/killed');
  expect(await caller.ended(runId)).toMatchObject({ status: 'failed', error: { code: 'out_of_memory' } });
  expect((await caller.call('interrupted/pid')).status).toBe(200);
});
