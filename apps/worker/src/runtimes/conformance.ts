// What every runtime must do, whatever its apps are written in. Its test app has the functions named here.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Runtime } from './runtime.ts';
import { Call, reached } from './testing/calls.ts';

/** Time limits for a test that is about them; any other runs with limits that it cannot come to, however busy the machine is. */
export interface ShortLimits {
  readonly timeoutMs?: number;
  readonly cancelGraceMs?: number;
}

/** @param make a runtime of the test app, not yet started */
export function conformance(name: string, make: (concurrency: number, limits?: ShortLimits) => Runtime): void {
  describe.each([1, 100])(`${name} with %s runs at a time`, (concurrency) => {
    let runtime: Runtime;
    let folder: string;
    const call = (fn: string, params: object | string = {}, paced = false): Call =>
      new Call(runtime, fn, params, paced);

    async function started(limits?: ShortLimits): Promise<Runtime> {
      const made = make(concurrency, limits);
      made.start();
      await reached(made, 'ready');
      return made;
    }

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'steps-'));
      runtime = await started();
    });
    afterAll(async () => {
      await runtime.close();
      await rm(folder, { recursive: true });
    });

    test('it has as many free slots as runs may be in it', () => {
      expect(runtime.freeSlots).toBe(concurrency);
    });

    test('public functions are described, private and imported ones are not there', () => {
      const names = runtime.functions.map((fn) => fn.name);
      expect(names).toEqual(expect.arrayContaining(['echo', 'add', 'count']));
      for (const hidden of ['_private', 'setup', 'teardown', 'deque', 'Countdown']) expect(names).not.toContain(hidden);
      expect(runtime.functions.find((fn) => fn.name === 'add')?.parameters).toEqual([
        { name: 'a', required: true, annotation: 'int' },
        { name: 'b', required: false, default: 2, annotation: 'int' },
      ]);
      expect(runtime.functions.find((fn) => fn.name === 'echo')).toMatchObject({
        doc: 'Gives back what it got.',
        extra: true,
      });
    });

    test('parameters and results are passed as they are: large integers, 1.0, unicode', async () => {
      const text = '{"a":12345678901234567890123,"b":1.0,"c":"ü\u2028","__proto__":1}';
      const run = call('echo', text);
      expect(await run.result()).toBe(text);
      expect(await run.ended).toMatchObject({ state: 'succeeded', streamed: false, items: 0 });
      expect(run.startedAs).toBe(false);
    });

    test('the run id is filled in unless the caller sent one', async () => {
      const run = call('named');
      expect(await run.result()).toBe(`"${run.runId}"`);
      expect(await call('named', { run_id: 'mine' }).result()).toBe('"mine"');
    });

    test.each([
      [201, 201],
      [599, 599],
      [204, undefined],
      [304, undefined],
      [600, undefined],
      [true, undefined],
      ['201', undefined],
    ])('a status_code of %s asks for %s', async (status, asked) => {
      expect((await call('with_status', { status }).ended).statusCode).toBe(asked);
    });

    test('wrong arguments are named, each', async () => {
      expect(await call('add', { c: 1 }).ended).toMatchObject({
        state: 'failed',
        error: {
          code: 'invalid_input',
          details: [
            { loc: ['body', 'a'], type: 'missing' },
            { loc: ['body', 'c'], type: 'unexpected' },
          ],
        },
      });
    });

    test.each(['_private', 'setup', 'deque', 'unknown'])('%s cannot be called', async (fn) => {
      expect((await call(fn).ended).error?.code).toBe('not_found');
    });

    test('a function that raises fails with class and text, and the traceback is in its log', async () => {
      const run = call('raises', { text: 'so' });
      expect(await run.ended).toMatchObject({
        state: 'failed',
        error: { code: 'function_error', type: 'ValueError', message: 'so' },
      });
      expect(run.printed.join('\n')).toContain('ValueError: so');
    });

    test('a generator streams its items in order, and succeeds', async () => {
      const run = call('count', { n: 5000 });
      expect(await run.ended).toMatchObject({ state: 'succeeded', streamed: true, items: 5000 });
      expect(run.items).toEqual(Array.from({ length: 5000 }, (_, i) => `item ${i}`));
      expect(run.startedAs).toBe(true);
    });

    test('a generator without items is a stream', async () => {
      expect(await call('count', { n: 0 }).ended).toMatchObject({ state: 'succeeded', streamed: true, items: 0 });
    });

    test('strings, JSON and texts with newlines keep their order and kind', async () => {
      const run = call('mixed');
      await run.ended;
      expect(run.frames.map(({ kind, blob }) => [kind, blob.toString()])).toEqual([
        ['s', 'text'],
        ['j', '{"json":1}'],
        ['m', 'two\nlines'],
        ['s', ''],
        ['j', '1.0'],
        ['m', 'data: {}\n\n'],
      ]);
    });

    test('an item arrives while the function has not gone on to the next', async () => {
      const run = call('step_by_step', { folder, n: 3 });
      for (let n = 1; n <= 3; n++) {
        await run.until(() => run.count >= n);
        expect(run.count).toBe(n);
        expect(run.ends).toBe(0);
        await writeFile(join(folder, `${n - 1}`), '');
      }
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 3 });
    });

    test('a failure after items comes after them', async () => {
      const run = call('raises_later');
      expect(await run.ended).toMatchObject({ state: 'failed', items: 1, streamed: true, error: { message: 'later' } });
      expect(run.items).toEqual(['1']);
    });

    test('what is not JSON is refused, after the items that are', async () => {
      expect((await call('not_json').ended).error?.code).toBe('unserializable_output');
      expect((await call('not_a_number').ended).error?.code).toBe('unserializable_output');
      const run = call('raw_bytes');
      expect(await run.ended).toMatchObject({ state: 'failed', items: 1, error: { code: 'unserializable_output' } });
      expect((await run.ended).error?.message).toContain('base64');
    });

    test('what is too large is refused, after the items that are not', async () => {
      expect((await call('large_result', { n: 300_000 }).ended).error?.code).toBe('output_too_large');
      expect(await call('large_item', { n: 100_001 }).ended).toMatchObject({
        items: 1,
        error: { code: 'output_too_large' },
      });
      const many = call('much', { n: 1000, size: 999 });
      expect(await many.ended).toMatchObject({ items: 200, error: { code: 'output_too_large' } });
    });

    test('a paced stream may be longer than the limit of a kept one', async () => {
      const run = call('much', { n: 1000, size: 999 }, true);
      const grant = (): void => run.running?.credit(run.count);
      while (run.ends === 0) {
        const before = run.count;
        await run.until(() => run.count > before || run.ends > 0);
        grant();
      }
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 1000 });
    });

    test('without credits the generator is paused, and goes on with them', async () => {
      const run = call('flood', { n: 10_000 }, true);
      await run.until(() => run.count === 256);
      run.running?.credit(256);
      await run.until(() => run.count === 256 + 512);
      run.running?.credit(300);
      await run.until(() => run.count === 300 + 1024);
      for (let taken = run.count; run.ends === 0; taken = run.count) {
        run.running?.credit(taken);
        await run.until(() => run.count > taken || run.ends > 0);
      }
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 10_000 });
    });

    test('a paused generator can be cancelled', async () => {
      const run = call('flood', { n: 10_000 }, true);
      await run.until(() => run.count === 256);
      run.running?.cancel('cancelled');
      expect(await run.ended).toMatchObject({ state: 'cancelled', items: 256 });
    });

    test('a cancel reaches a sleeping generator, and its clean-up is logged', async () => {
      for (const fn of ['sleeper', 'sleeper_that_takes_time', 'async_sleeper']) {
        const run = call(fn);
        await run.until(() => run.count === 1);
        run.running?.cancel('cancelled');
        expect(await run.ended).toMatchObject({ state: 'cancelled', items: 1, error: { code: 'cancelled' } });
        expect(run.printed).toContain('cleaned up');
      }
    });

    test('a cancel reaches a looping function', async () => {
      const run = call('looper');
      await run.until(() => run.count === 1);
      run.running?.cancel('cancelled');
      expect((await run.ended).state).toBe('cancelled');
    });

    test('cancels at any time hit no other run', async () => {
      for (let round = 0; round < 120; round++) {
        const victim = call('brief', { ms: round % 2 === 0 ? 2 : 6 });
        await new Promise((resolve) => setTimeout(resolve, (round * 2.7) % 8));
        victim.running?.cancel('cancelled');
        const state = (await victim.ended).state;
        expect(['cancelled', 'succeeded']).toContain(state);
        const next = call('brief', { ms: 1 });
        expect(await next.result()).toBe('"whole"');
      }
    });

    test('a function over its time limit is stopped', async () => {
      const own = await started({ timeoutMs: 1_000 });
      const run = new Call(own, 'sleeper');
      expect(await run.ended).toMatchObject({ state: 'timed_out', error: { code: 'timed_out' } });
      expect(run.printed).toContain('cleaned up');
      await own.close();
    });

    test.each([
      ['exits', 'replica_crashed', 'code 3'],
      ['segfaults', 'replica_crashed', 'SIGSEGV'],
      ['killed', 'out_of_memory', 'killed'],
      ['crashes_after_an_item', 'replica_crashed', 'code 4'],
    ])('a process that dies (%s) is %s, and the next call works', async (fn, code, text) => {
      const run = call(fn);
      expect(await run.ended).toMatchObject({ state: 'failed', error: { code } });
      expect((await run.ended).error?.message).toContain(text);
      expect(await call('add', { a: 1 }).result()).toBe('3');
      expect(run.ends).toBe(1);
    });

    test('a function that no cancel stops is given up after the grace, and the next call works', async () => {
      const own = await started({ cancelGraceMs: 1_000 });
      for (const fn of ['stubborn', 'blocked']) {
        const run = new Call(own, fn);
        await run.until(() => run.count === 1);
        run.running?.cancel('cancelled');
        expect((await run.ended).state).toBe('cancelled');
        expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      }
      await own.close();
    });

    test('a drain lets runs end, then nothing runs', async () => {
      const own = await started();
      const steps = join(folder, 'drained');
      await mkdir(steps);
      const run = new Call(own, 'step_by_step', { folder: steps, n: 1 });
      await run.until(() => run.count === 1);
      const drained = own.drain();
      expect(own.freeSlots).toBe(0);
      await writeFile(join(steps, '0'), '');
      expect((await run.ended).state).toBe('succeeded');
      await drained;
      expect((await new Call(own, 'nothing').ended).error?.code).toBe('unavailable');
    });
  });
}
