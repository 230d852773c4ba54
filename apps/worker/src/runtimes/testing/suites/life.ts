// harness/PROTOCOL.md, "Life of a replica": starts, drains, cancels and ends of processes, in every language.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { Call, reached } from '../calls.ts';
import { gone, isRunning, Language, type LanguageName, numbers } from '../languages.ts';

export function lifeSuite(name: LanguageName): void {
  describe(`${name}, life`, () => {
    const language = new Language(name);
    afterAll(() => language.end());

    test('a cancelled run that does not end harms no other run', async () => {
      const folder = await language.emptyFolder();
      const own = await language.started(100, { cancelGraceMs: 1_000 });
      const neighbour = new Call(own, 'step_by_step', { folder, n: 3 });
      await neighbour.until(() => neighbour.count === 1);
      // A blocked event loop would harm the others. In JavaScript, only a function that waits can be given up.
      const stuck = new Call(own, language.of({ Python: 'blocked', Node: 'stubborn' }));
      await stuck.until(() => stuck.count === 1);
      stuck.running?.cancel('cancelled');
      expect((await stuck.ended).state).toBe('cancelled');
      for (const step of numbers(3)) await writeFile(join(folder, `${step}`), '');
      expect(await neighbour.ended).toMatchObject({ state: 'succeeded', items: 3 });
      await own.close();
    });

    test('the children of a function end with its process', async () => {
      const own = await language.started(100, { entry: 'faults' });
      const child = Number(await new Call(own, 'leaves_a_child').result());
      expect(await isRunning(child)).toBe(true);
      await own.close();
      await gone(child);
    });

    test('no process outlives a killed worker, even if a function never leaves the interpreter', async () => {
      const script = join(import.meta.dirname, '..', 'doomed-worker.ts');
      const worker = spawn('node', ['--conditions=source', script, name], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [printed] = (await once(worker.stdout, 'data')) as [Buffer];
      const pids = printed.toString().trim().split(' ').map(Number);
      for (const pid of pids) expect(await isRunning(pid)).toBe(true);
      worker.kill('SIGKILL');
      for (const pid of pids) await gone(pid);
    });

    test('an app whose import fails is broken, with the reason', async () => {
      const folder = await language.appOf({
        Python: 'import json\nraise RuntimeError("no model")\n',
        Node: "throw new RangeError('no model');\n",
      });
      const own = language.make(100, { folder });
      own.start();
      const early = new Call(own, 'anything');
      await reached(own, 'broken');
      const type = language.of({ Python: 'RuntimeError', Node: 'RangeError' });
      expect(own.error).toMatchObject({ code: 'app_failed_to_start', type });
      expect(own.error?.message).toContain('no model');
      expect((await early.ended).error?.code).toBe('app_failed_to_start');
      expect((await new Call(own, 'anything').ended).error?.code).toBe('app_failed_to_start');
      await own.close();
    });

    test('an app whose setup() fails is broken, with the reason', async () => {
      const folder = await language.appOf({
        Python: 'async def setup():\n    raise ValueError("no weights")\n',
        Node: "export async function setup() {\n  throw new Error('no weights');\n}\n",
      });
      const own = language.make(100, { folder });
      own.start();
      await reached(own, 'broken');
      expect(own.error?.message).toMatch(/^setup\(\) failed: .*no weights/);
      await own.close();
    });

    test('metrics count processes by state, starts by result and crashes by kind', async () => {
      const before = { ...language.counted };
      const own = language.make(1);
      const moved = (what: string): number => (language.counted[what] ?? 0) - (before[what] ?? 0);
      own.start();
      await reached(own, 'ready');
      expect([moved('spawning'), moved('loading'), moved('ready'), moved('start ready')]).toEqual([0, 0, 1, 1]);
      await new Call(own, 'exits').ended;
      while (moved('start ready') < 2) await new Promise((resolve) => setTimeout(resolve, 10));
      await new Call(own, 'segfaults').ended;
      expect([moved('crash exit'), moved('crash signal'), moved('crash channel')]).toEqual([1, 1, 0]);
      await own.close();
      expect(['spawning', 'loading', 'ready', 'retiring', 'draining', 'failed'].map(moved)).toEqual([0, 0, 0, 0, 0, 0]);
    });

    test('a drained process runs teardown() after its last run, and the output of teardown() is logged', async () => {
      const folder = await language.emptyFolder();
      const tornDown = JSON.stringify(join(folder, 'torn down'));
      const own = await language.started(100, {
        folder: await language.appOf({
          Python: `
import os, time
def waits(path):
    yield "waiting"
    while not os.path.exists(path):
        time.sleep(0.01)
    print("the run ends")
def teardown():
    print("torn down")
    open(${tornDown}, "w").close()
`,
          Node: `
import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
export async function* waits({ path }: { path: string }) {
  yield 'waiting';
  while (!existsSync(path)) await pause(10);
  console.log('the run ends');
}
export async function teardown() {
  await pause(1);
  console.log('torn down');
  writeFileSync(${tornDown}, '');
}
`,
        }),
      });
      const run = new Call(own, 'waits', { path: join(folder, 'enough') });
      await run.until(() => run.count === 1);
      const before = language.lines.length;
      const drained = own.drain();
      await writeFile(join(folder, 'enough'), '');
      expect((await run.ended).state).toBe('succeeded');
      await drained;
      expect(await readFile(join(folder, 'torn down'), 'utf8')).toBe('');
      expect(language.lines.slice(before)).toContain('torn down');
    });

    test('a drained process with a teardown() that hangs is killed', async () => {
      const own = await language.started(100, {
        folder: await language.appOf({
          Python: 'import os, time\ndef teardown():\n    time.sleep(600)\ndef pid():\n    return os.getpid()\n',
          Node: 'export const teardown = () => new Promise(() => {});\nexport const pid = () => process.pid;\n',
        }),
        teardownMs: 1_000,
      });
      const pid = Number(await new Call(own, 'pid').result());
      const before = language.lines.length;
      await own.drain();
      expect(await isRunning(pid)).toBe(false);
      expect(language.lines.slice(before)).toContainEqual(expect.stringContaining('did not end within 1 s'));
    });

    test('a stuck function that is alone in its process is killed after the grace, without an earlier signal', async () => {
      const folder = await language.emptyFolder();
      const own = await language.started(1, { cancelGraceMs: 1_000 });
      const run = new Call(own, 'notes_signals', { path: join(folder, 'signalled') });
      await run.until(() => run.count === 1);
      run.running?.cancel('cancelled');
      expect((await run.ended).state).toBe('cancelled');
      expect(await readdir(folder)).toEqual([]);
      await own.close();
    });
  });
}
