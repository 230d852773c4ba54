// Contract 5, "Logs: `GET /runs/{run_id}/logs`": the output of functions, in every language.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Runtime } from '../../runtime.ts';
import { Call } from '../calls.ts';
import { Language, type LanguageName, numbers } from '../languages.ts';

export function outputSuite(name: LanguageName): void {
  describe(`${name}, output`, () => {
    const language = new Language(name);
    let runtime: Runtime;
    const call = (fn: string, params: object = {}): Call => new Call(runtime, fn, params);
    beforeAll(async () => {
      runtime = await language.started(100, { entry: 'output' });
    });
    afterAll(() => language.end());

    test('the output of functions, native code and children is logged, and never in the stream', async () => {
      const run = call('prints');
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 2 });
      expect(run.items).toEqual(['1', '2']);
      expect(run.printed).toEqual(
        expect.arrayContaining(['to stdout', 'to stderr', 'raw', 'from a child', 'no newline']),
      );
      expect(run.lines.find(({ text }) => text === 'to stderr')).toMatchObject({ stream: 'stderr' });
    });

    test('a hundred runs print and log at once: each run has all its lines in order, and no line is lost', async () => {
      const n = 150;
      const runs = numbers(100).map((i) => {
        const fn = ['says_much', 'says_much_async', 'streams_and_says'][i % 3] as string;
        return { fn, name: `run-${i}`, run: call(fn, { name: `run-${i}`, n }) };
      });
      for (const { fn, name: who, run } of runs) {
        expect((await run.ended).state).toBe('succeeded');
        expect(run.cut).toBe(0);
        const said = (part: string, count: number): string[] =>
          numbers(count).flatMap((i) => [`${part} prints ${i}`, `${part} logs ${i}`]);
        if (fn === 'says_much_async') {
          for (const part of [`${who} a`, `${who} b`])
            expect(run.printed.filter((text) => text.startsWith(part))).toEqual(said(part, n / 2));
          expect(run.printed).toHaveLength(n * 2);
        } else {
          expect(run.printed).toEqual(said(who, n));
        }
        expect(run.lines.every(({ stream, text }) => stream === (text.includes('prints') ? 'stdout' : 'stderr'))).toBe(
          true,
        );
      }
    });

    test('the output of what a function starts belongs to its run, and to no run after its end', async () => {
      const path = join(await language.emptyFolder(), 'ended');
      const runs = numbers(10).map((i) => ({
        name: `run-${i}`,
        run: call('says_by_others', { name: `run-${i}`, path }),
      }));
      for (const { name: who, run } of runs) {
        await run.ended;
        expect(run.printed).toEqual([`${who} own thread`, ...numbers(20).map((i) => `${who} pool ${i}`)]);
      }
      await writeFile(path, '');
      while (!language.lines.some((text) => text.endsWith(' late')))
        await new Promise((resolve) => setTimeout(resolve, 10));
      const awaited = call('says_in_a_thread', { name: 'awaited' });
      await awaited.ended;
      expect(awaited.printed).toEqual(['awaited to_thread', 'awaited executor']);
    });

    test('a function that prints in a loop loses only its oldest lines, and does not delay other runs', async () => {
      const path = join(await language.emptyFolder(), 'enough');
      const flood = call('prints_a_flood', { lines: 200_000, path });
      await flood.until(() => flood.lines.length > 0);
      for (let times = 0; times < 20; times++) expect(await call('add', { a: 1 }).result()).toBe('3');
      expect(flood.ends).toBe(0);
      await writeFile(path, '');
      const printed = Number(await flood.result());
      expect(flood.printed.at(-1)).toBe('last');
      expect(flood.cut).toBeGreaterThan(0);
      expect(flood.printed.length + flood.cut).toBe(printed);
    });

    test('lines of a child process that prints without end are read at a limited rate', async () => {
      const began = performance.now();
      const run = call('child_prints_a_flood', { seconds: 1 });
      await run.until(() => run.lines.length > 0); // if another run were open from the start, the lines would belong to no run
      expect(await call('add', { a: 1 }).result()).toBe('3');
      await run.ended;
      expect(run.printed.slice(0, 3)).toEqual(['y', 'y', 'y']);
      // 50 lines a millisecond, and the content of the pipe once or twice. The child prints tens of thousands.
      expect(run.lines.length + run.cut).toBeLessThan((performance.now() - began) * 100 + 200_000);
    });

    test('an endless line of a child process is read at a limited rate', async () => {
      // A new process, because the pipe of the shared process may still hold another child's lines.
      const own = await language.started(100, { entry: 'output' });
      const run = new Call(own, 'child_prints_one_line', { seconds: 1 });
      await run.until(() => run.lines.length > 0);
      expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      const { runTimeMs } = await run.ended;
      // 8 KiB, one line, a millisecond. The remaining content of the pipe is read at the end without a limit.
      expect(run.printed.length).toBeLessThan(runTimeMs + 100);
      await own.close();
    });

    test('a very long line is logged in pieces, in time proportional to its length', async () => {
      // Time proportional to the square of the length would far exceed the time limit.
      const own = await language.started(100, { entry: 'output', timeoutMs: 60_000 });
      expect(await new Call(own, 'prints_one_line', { megabytes: 80 }).ended).toMatchObject({ state: 'succeeded' });
      await own.close();
    });
  });
}
