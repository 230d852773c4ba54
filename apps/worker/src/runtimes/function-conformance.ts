// Contract 1: the behaviour of functions in every language, beyond the conformance of all runtimes: functions, their parameters and results.
// The test app has the functions that are named here.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ShortLimits } from './conformance.ts';
import type { Runtime } from './runtime.ts';
import { Call } from './testing/calls.ts';
import type { Language } from './testing/languages.ts';

export function functionConformance(language: Language): void {
  describe.each([1, 100])(`${language.name} with %s runs at a time, as a runtime of functions`, (concurrency) => {
    let runtime: Runtime;
    const call = (fn: string, params: object | string = {}, paced = false): Call =>
      new Call(runtime, fn, params, paced);

    const started = (limits?: ShortLimits): Promise<Runtime> => language.started(concurrency, limits);

    beforeAll(async () => {
      runtime = await started();
    });
    afterAll(() => runtime.close());

    test('public functions are described, private and imported functions are not', () => {
      const names = runtime.functions.map((fn) => fn.name);
      expect(names).toEqual(expect.arrayContaining(['echo', 'add', 'count']));
      for (const hidden of ['_private', 'setup', 'teardown', 'deque', 'Countdown']) expect(names).not.toContain(hidden);
      const annotation = language.of({ Python: { annotation: 'int' }, Node: {} });
      expect(runtime.functions.find((fn) => fn.name === 'add')?.parameters).toEqual([
        { name: 'a', required: true, ...annotation },
        { name: 'b', required: false, default: 2, ...annotation },
      ]);
      expect(runtime.functions.find((fn) => fn.name === 'echo')).toMatchObject({
        doc: 'Returns its parameters.',
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
    ])('a status_code of %s sets the status %s', async (status, asked) => {
      expect((await call('with_status', { status }).ended).statusCode).toBe(asked);
    });

    test('the status_code of a first yielded object is data', async () => {
      const run = call('yields_status', { status: 404 });
      const end = await run.ended;
      expect(end).toMatchObject({ state: 'succeeded', streamed: true, items: 1 });
      expect(end).not.toHaveProperty('statusCode');
      expect(run.items).toEqual(['{"status_code":404}']);
    });

    test.each([
      [
        { status_code: 404, detail: 'not here' },
        { message: 'not here', status: 404 },
      ],
      [
        { status_code: 400, detail: { field: 'a' } },
        { message: '{"field":"a"}', status: 400 },
      ],
      [{ status_code: 599 }, { message: 'the text', status: 599 }],
      [
        { status_code: 429, headers: { 'Retry-After': '7' } },
        { status: 429, retryAfter: '7' },
      ],
      [
        { status_code: 503, headers: { 'retry-after': 12 } },
        { status: 503, retryAfter: '12' },
      ],
      [
        { status_code: 503, headers: { 'retry-after': 'Sat, 21 Nov 2026 03:59:58 GMT' } },
        { status: 503, retryAfter: 'Sat, 21 Nov 2026 03:59:58 GMT' },
      ],
    ])('an exception with %j has its status and message', async (fields, error) => {
      const end = await call('raises_status', fields).ended;
      expect(end).toMatchObject({ state: 'failed', error: { code: 'function_error', type: 'HttpError', ...error } });
    });

    test.each([
      [{ status_code: 399, detail: 'a' }],
      [{ status_code: 600, detail: 'a' }],
      [{ status_code: true, detail: 'a' }],
      [{ status_code: '404', detail: 'a' }],
    ])('an exception with %j is treated as any other exception', async (fields) => {
      const { error } = await call('raises_status', fields).ended;
      expect(error).toEqual({ code: 'function_error', type: 'HttpError', message: 'the text' });
    });

    test('a status_code that cannot be read does not hide the exception', async () => {
      const { error } = await call('raises_status_badly').ended;
      expect(error).toEqual({ code: 'function_error', type: 'Bad', message: 'bad' });
    });

    test.each([
      [{ status_code: 500, headers: { 'retry-after': '7' } }],
      [{ status_code: 503, headers: { 'retry-after': 'soon\r\nSet-Cookie: a=b' } }],
      [{ status_code: 503, headers: { 'retry-after': '-1' } }],
      [{ status_code: 503, headers: 'retry-after: 7' }],
    ])('%j has no Retry-After that is passed on', async (fields) => {
      expect((await call('raises_status', fields).ended).error).not.toHaveProperty('retryAfter');
    });

    test('every wrong argument is named', async () => {
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

    test('an exception in a function sets the class and text of the error, and its traceback is logged', async () => {
      const type = language.of({ Python: 'ValueError', Node: 'TypeError' });
      const run = call('raises', { text: 'so' });
      expect(await run.ended).toMatchObject({
        state: 'failed',
        error: { code: 'function_error', type, message: 'so' },
      });
      expect(run.printed.join('\n')).toContain(`${type}: so`);
    });

    test('strings, JSON and texts with newlines keep their order and kind', async () => {
      const run = call('mixed');
      await run.ended;
      expect(run.frames.map(({ kind, blob }) => [kind, blob.toString()])).toEqual([
        ['s', 'text'],
        ['j', '{"json":1}'],
        ['m', 'two\nlines'],
        ['s', ''],
        ['j', language.of({ Python: '1.0', Node: '1.5' })],
        ['m', 'data: {}\n\n'],
      ]);
    });

    test('an output that is not JSON is refused, after the items that are JSON', async () => {
      expect((await call('not_json').ended).error?.code).toBe('unserializable_output');
      expect((await call('not_a_number').ended).error?.code).toBe('unserializable_output');
      const run = call('raw_bytes');
      expect(await run.ended).toMatchObject({ state: 'failed', items: 1, error: { code: 'unserializable_output' } });
      expect((await run.ended).error?.message).toContain('base64');
    });

    test('an output over a limit is refused, after the items within the limit', async () => {
      expect((await call('large_result', { n: 300_000 }).ended).error?.code).toBe('output_too_large');
      expect(await call('large_item', { n: 100_001 }).ended).toMatchObject({
        items: 1,
        error: { code: 'output_too_large' },
      });
      const many = call('much', { n: 1000, size: 999 });
      expect(await many.ended).toMatchObject({ items: 200, error: { code: 'output_too_large' } });
    });

    test('a generator pauses without credits, and continues with credits', async () => {
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

    test('a cancel reaches a sleeping generator, and the output of its clean-up is logged', async () => {
      for (const fn of ['sleeper', 'sleeper_that_takes_time', 'async_sleeper']) {
        const run = call(fn);
        await run.until(() => run.count >= 1);
        run.running?.cancel('cancelled');
        expect(await run.ended).toMatchObject({ state: 'cancelled', items: 1, error: { code: 'cancelled' } });
        expect(run.printed).toContain('cleaned up');
      }
    });

    test('a cancel reaches a looping function', async () => {
      // In JavaScript, only the end of the process stops a loop.
      const own = await started(language.of({ Python: {}, Node: { cancelGraceMs: 1_000 } }));
      const run = new Call(own, 'looper');
      await run.until(() => run.count >= 1);
      run.running?.cancel('cancelled');
      expect((await run.ended).state).toBe('cancelled');
      expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      await own.close();
    });

    test('a function that ignores its cancel is given up after the grace, and the next call works', async () => {
      const own = await started({ cancelGraceMs: 1_000 });
      for (const fn of ['stubborn', 'blocked']) {
        const run = new Call(own, fn);
        await run.until(() => run.count >= 1);
        run.running?.cancel('cancelled');
        expect((await run.ended).state).toBe('cancelled');
        expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      }
      await own.close();
    });
  });
}
