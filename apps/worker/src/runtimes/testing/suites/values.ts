// Contract 1: kinds of functions and their values, in every language.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Runtime } from '../../runtime.ts';
import { Call } from '../calls.ts';
import { Language, type LanguageName, numbers } from '../languages.ts';

export function valueSuite(name: LanguageName): void {
  describe(`${name}, values`, () => {
    const language = new Language(name);
    let runtime: Runtime;
    const call = (fn: string, params: object = {}): Call => new Call(runtime, fn, params);
    beforeAll(async () => {
      runtime = await language.started(100);
    });
    afterAll(() => language.end());

    test.each([
      ['iterator', ['2', '1', '0']],
      ['decorated', ['1', '2']],
      ['async_items', ['0', '1', '2']],
      ['gives_a_generator', ['item 0', 'item 1', 'item 2']],
    ])('%s is a stream', async (fn, items) => {
      const run = call(fn);
      expect(await run.ended).toMatchObject({ state: 'succeeded', streamed: true, items: items.length });
      expect(run.items).toEqual(items);
    });

    test('async functions and decorated functions return their value', async () => {
      expect(await call('async_value', { x: [1] }).result()).toBe('[1]');
      expect(await call('decorated_with_wraps', { x: 1 }).result()).toBe('1');
    });

    test('a TypeError inside the function is an error of the function', async () => {
      expect((await call('type_error_inside').ended).error).toMatchObject({
        code: 'function_error',
        type: 'TypeError',
      });
    });

    test('lone surrogates do not break an answer', async () => {
      expect(await call('surrogate').result()).toBe('"a\\ud800b"');
      const run = call('surrogate_items');
      await run.ended;
      expect(run.items).toEqual(['a\ufffdb', '["a\\ud800b"]']);
    });

    test('deep recursion is an error of the function, not a crash', async () => {
      for (const through_c of [false, true]) {
        const type = language.of({ Python: 'RecursionError', Node: 'RangeError' });
        expect((await call('recurses', { through_c }).ended).error).toMatchObject({ type });
      }
    });

    test('twenty waiting generators stream side by side', async () => {
      const folder = await language.emptyFolder();
      const runs = numbers(20).map((i) => call('meets', { folder, name: `${i}`, n: 20 }));
      for (const run of runs) expect(await run.ended).toMatchObject({ state: 'succeeded', items: 2 });
    });

    test('the app sees an allow-list of the environment and its own settings', async () => {
      const environment = JSON.parse((await call('environment').result()) ?? '{}');
      expect(environment).toMatchObject({ GREETING: 'hello', PROJECT_ID: 'demo', APP_NAME: 'test' });
      expect(environment).not.toHaveProperty('REDIS_URL');
    });

    test('an error of a function with debug has its stack', async () => {
      const own = await language.started(1, { debug: true });
      const { error } = await new Call(own, 'raises', { text: 'so' }).ended;
      expect(error?.traceback).toContain(language.of({ Python: 'ValueError: so', Node: 'TypeError: so' }));
      expect(error?.traceback).toContain(language.of({ Python: 'main.py', Node: 'main.ts' }));
      expect(error?.traceback).not.toContain('harness');
      await own.close();
    });

    test('a file of the app replaces neither a module of the language nor a module of the harness', async () => {
      const folder = await language.appOf({
        Python: 'import frames, process\ndef f():\n    return [frames.mine, process.mine]\n',
        Node: "import { mine } from './process.mjs';\nimport { mine as other } from './run.mjs';\nexport const f = () => [mine, other];\n",
      });
      const files = language.of({
        Python: ['frames.py', 'process.py', 'inspect.py'],
        Node: ['process.mjs', 'run.mjs', 'util.mjs'],
      });
      const code = language.of({ Python: 'mine = 1\n', Node: 'export const mine = 1;\n' });
      for (const file of files) await writeFile(join(folder, file), code);
      const own = await language.started(100, { folder });
      expect(await new Call(own, 'f').result()).toBe('[1,1]');
      await own.close();
    });
  });
}
