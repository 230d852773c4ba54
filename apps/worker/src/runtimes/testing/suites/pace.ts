// harness/PROTOCOL.md, "Pace": floods with a slow store, in every language.
import { readFile } from 'node:fs/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import { Call } from '../calls.ts';
import { Language, type LanguageName, numbers } from '../languages.ts';

const MIB = 1024 * 1024;

/** Returns the resident memory of a process in bytes. */
async function memoryOf(pid: string): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

export function paceSuite(name: LanguageName): void {
  describe(`${name}, pace`, () => {
    const language = new Language(name);
    afterAll(() => language.end());

    test('a flood with a slow store delays neither answers nor cancels of other runs, and loses no item', async () => {
      const own = await language.started(100, { maxOutputBytes: 100 * MIB });
      const pid = await new Call(own, 'pid').result();
      const flood = new Call(own, 'flood_large', { n: 1_000 });
      flood.running?.pause();
      const sleeper = new Call(own, 'sleeper');
      await sleeper.until(() => sleeper.count === 1);
      await flood.until(() => flood.count * 65_536 >= MIB);
      for (let times = 0; times < 20; times++) expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      sleeper.running?.cancel('cancelled');
      expect((await sleeper.ended).state).toBe('cancelled');
      // The frame that reaches the window is the last frame.
      expect(flood.count * 65_536).toBe(MIB);
      for (let stored = flood.count; flood.ends === 0; stored = flood.count) {
        flood.running?.credit(stored);
        await flood.until(() => flood.count > stored || flood.ends > 0);
      }
      expect(await flood.ended).toMatchObject({ state: 'succeeded', items: 1_000 });
      expect(await new Call(own, 'pid').result()).toBe(pid);
      await own.close();
    });

    test('a flood with a slow store can be cancelled', async () => {
      const own = await language.started(1, { maxOutputBytes: 100_000_000 });
      const flood = new Call(own, 'flood_large', { n: 1_000 });
      flood.running?.pause();
      await flood.until(() => flood.count > 0);
      flood.running?.cancel('cancelled');
      expect((await flood.ended).state).toBe('cancelled');
      await own.close();
    });

    test('a function yields nothing that its credit does not cover', async () => {
      const own = await language.started(100);
      const flood = new Call(own, 'flood', { n: 100_000 }, true);
      await flood.until(() => flood.count === 256);
      expect(Number(await new Call(own, 'produced').result())).toBe(256);
      flood.running?.cancel('cancelled');
      await flood.ended;
      await own.close();
    });

    test('floods whose readers stall keep the memory of their process flat, and print no warnings', async () => {
      const own = await language.started(100, { maxOutputBytes: 100_000 * MIB });
      const pid = (await new Call(own, 'pid').result()) as string;
      const before = await memoryOf(pid);
      const floods = numbers(50).map(() => new Call(own, 'flood_large', { n: 1_000_000 }, true));
      await Promise.all(floods.map((flood) => flood.until(() => flood.count * 65_536 >= MIB)));
      // The process answers, so it would have the time for further items.
      for (let times = 0; times < 20; times++) expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
      for (const flood of floods) {
        expect(flood.count * 65_536).toBe(MIB);
        expect(flood.lines).toEqual([]);
      }
      expect((await memoryOf(pid)) - before).toBeLessThan(150 * MIB);
      for (const flood of floods) flood.running?.cancel('cancelled');
      await Promise.all(floods.map((flood) => flood.ended));
      await own.close();
    });
  });
}
