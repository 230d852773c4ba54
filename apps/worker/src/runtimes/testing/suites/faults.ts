// harness/PROTOCOL.md: functions that die, break their channel or use up their process, in every language.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { Call } from '../calls.ts';
import { isRunning, Language, type LanguageName, resultOf } from '../languages.ts';

export function faultSuite(name: LanguageName): void {
  describe(`${name}, faults`, () => {
    const language = new Language(name);
    afterAll(() => language.end());
    const entry = 'faults';

    test('a dead process gets no run, even before its end is reported', async () => {
      const own = await language.started(100, { entry });
      const [keeper, pid] = (await resultOf(own, 'own_processes')) as [number, number];
      // The keeper would immediately report that the process has ended.
      process.kill(keeper, 'SIGSTOP');
      process.kill(pid, 'SIGKILL');
      while (own.freeSlots > 0) await new Promise((resolve) => setTimeout(resolve, 1));
      expect(await isRunning(keeper)).toBe(true);
      const next = new Call(own, 'pid').result();
      process.kill(keeper, 'SIGCONT');
      expect(await next).not.toBe(String(pid));
      await own.close();
    });

    test('an app that breaks the channel while it is imported fails to start, and is not restarted at once', async () => {
      const folder = await language.appOf({
        Python: 'import os\nfor fd in range(100, 130):\n    try: os.write(fd, b"junk\\n")\n    except OSError: pass\n',
        Node: "import { writeSync } from 'node:fs';\nwriteSync(3, 'junk\\n');\nawait new Promise(() => {});\n",
      });
      const own = language.make(100, { folder });
      const before = language.lines.length;
      own.start();
      const count = (text: string): number => language.lines.slice(before).filter((line) => line === text).length;
      while (count('a process did not start') === 0) await new Promise((resolve) => setTimeout(resolve, 10));
      expect(count('a process ended by itself')).toBe(0);
      await own.close();
    });

    test('a function that forges the header of a large frame ends its process, and the next call works', async () => {
      const own = await language.started(100, { entry });
      const run = new Call(own, 'forges_a_header', { bytes: 2 ** 31 - 1 });
      expect((await run.ended).error?.code).toBe('replica_crashed');
      expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      await own.close();
    });

    test('a function that forges more items than its credit allows ends its process', async () => {
      const own = await language.started(100, { entry, maxOutputBytes: 100_000_000 });
      expect((await new Call(own, 'forges_items').ended).error?.code).toBe('replica_crashed');
      expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      await own.close();
    });

    test('a process without free file descriptors is replaced when its runs have ended', async () => {
      const own = await language.started(100, { entry });
      const before = await new Call(own, 'pid').result();
      const folder = await language.emptyFolder();
      const neighbour = new Call(own, 'step_by_step', { folder, n: 1 });
      await neighbour.until(() => neighbour.count === 1);
      const type = language.of({ Python: 'OSError', Node: 'Error' });
      expect((await new Call(own, 'leaks_files').ended).error).toMatchObject({ code: 'function_error', type });
      expect(await new Call(own, 'pid').result()).not.toBe(before);
      await writeFile(join(folder, '0'), '');
      expect(await neighbour.ended).toMatchObject({ state: 'succeeded', items: 1 });
      await own.close();
    });
  });
}
