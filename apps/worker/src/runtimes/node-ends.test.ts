// Contract 2, "Errors": how processes of JavaScript apps end, and what their runs receive.
import { afterAll, beforeEach, expect, test } from '@jest/globals';
import type { Runtime } from './runtime.ts';
import { Call } from './testing/calls.ts';
import { Language, resultOf } from './testing/languages.ts';

const MIB = 2 ** 20;
const language = new Language('Node');
let runtime: Runtime;
const call = (fn: string, params: object = {}): Call => new Call(runtime, fn, params);

beforeEach(async () => {
  await language.end();
  runtime = await language.started(100, { entry: 'ends', cancelGraceMs: 500 });
});
afterAll(() => language.end());

/** Starts a run that waits beside another run. */
async function waiting(): Promise<Call> {
  const run = call('waits');
  await run.until(() => run.count === 1);
  return run;
}

test.each([
  ['exits', 'replica_crashed', 'exited with code 3'],
  ['throws_later', 'replica_crashed', 'exited with code 1'],
  ['aborts', 'replica_crashed', 'SIGABRT'],
])('%s ends all runs of its process as %s, and the next call works', async (fn, code, text) => {
  const neighbour = await waiting();
  for (const run of [call(fn), neighbour]) {
    const { error } = await run.ended;
    expect(error).toMatchObject({ code, message: expect.stringContaining(text) });
  }
  expect(await resultOf(runtime, 'add', { a: 1 })).toBe(3);
});

test('the items before a loop arrive, also if another run has just sent an item', async () => {
  const neighbour = call('waits');
  const run = call('yields_and_loops', { n: 7 });
  await run.until(() => run.count === 7);
  await neighbour.until(() => neighbour.count === 1);
  run.running?.cancel('cancelled');
  expect((await run.ended).state).toBe('cancelled');
});

test('a rejection that nothing awaits is an error of its run only', async () => {
  const neighbour = await waiting();
  const pid = await resultOf(runtime, 'pid');
  for (const fn of ['rejects', 'rejects_later']) {
    const run = call(fn);
    expect((await run.ended).error).toEqual({ code: 'function_error', type: 'RangeError', message: 'nobody waits' });
    expect(run.printed.join('\n')).toContain('RangeError: nobody waits');
  }
  expect(await resultOf(runtime, 'pid')).toBe(pid);
  expect(neighbour.ends).toBe(0);
});

test('a rejection of an unknown run is an error of all runs in flight', async () => {
  const neighbour = await waiting();
  const pid = await resultOf(runtime, 'pid');
  expect(await resultOf(runtime, 'rejects_outside')).toBe('called');
  expect((await neighbour.ended).error).toMatchObject({ code: 'function_error', type: 'RangeError' });
  expect(await resultOf(runtime, 'pid')).toBe(pid);
});

test('a full heap ends the process as out_of_memory, and the next call works', async () => {
  const own = await language.started(100, { entry: 'ends', memoryBytes: 512 * MIB });
  expect(await resultOf(own, 'heap_limit')).toBeLessThan(512 * MIB);
  const { error } = await new Call(own, 'fills_the_heap').ended;
  expect(error).toMatchObject({ code: 'out_of_memory', message: expect.stringContaining('[hardware] memory') });
  expect(await resultOf(own, 'add', { a: 1 })).toBe(3);
});

test('a cancelled loop ends its process, and its neighbours end as replica_crashed', async () => {
  const neighbour = await waiting();
  const loop = call('loops');
  await loop.until(() => loop.count === 1);
  loop.running?.cancel('cancelled');
  expect((await loop.ended).state).toBe('cancelled');
  expect((await neighbour.ended).error?.code).toBe('replica_crashed');
  expect(await resultOf(runtime, 'add', { a: 1 })).toBe(3);
});

test('a cancel ends timers and fetches that take the signal', async () => {
  for (const fn of ['sleeps', 'fetches']) {
    const run = call(fn);
    await run.until(() => run.lines.length > 0);
    run.running?.cancel('cancelled');
    expect((await run.ended).state).toBe('cancelled');
  }
});

test('a child of a function inherits no descriptor of the protocol', async () => {
  expect(await resultOf(runtime, 'sockets_of_a_child')).toEqual([]);
});

test('with one run at a time, a run has its process alone', async () => {
  const own = await language.started(1, { entry: 'ends', replicas: 2 });
  const first = new Call(own, 'waits');
  await first.until(() => first.count === 1);
  expect(await resultOf(own, 'pid')).not.toBe(Number(first.items[0]));
});
