// What a runtime of functions must do beyond the conformance of all runtimes: what functions are, take and give. Its test app has the
// functions named here.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ShortLimits } from './conformance.ts';
import type { Runtime } from './runtime.ts';
import { Call, reached } from './testing/calls.ts';

/** @param make a runtime of the test app, not yet started */
export function functionConformance(name: string, make: (concurrency: number, limits?: ShortLimits) => Runtime): void {
  describe.each([1, 100])(`${name} with %s runs at a time, as a runtime of functions`, (concurrency) => {
    let runtime: Runtime;
    const call = (fn: string, params: object | string = {}, paced = false): Call =>
      new Call(runtime, fn, params, paced);

    async function started(limits?: ShortLimits): Promise<Runtime> {
      const made = make(concurrency, limits);
      made.start();
      await reached(made, 'ready');
      return made;
    }

    beforeAll(async () => {
      runtime = await started();
    });
    afterAll(() => runtime.close());

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
  });
}
