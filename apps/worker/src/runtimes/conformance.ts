// Contract 1: the behaviour of every runtime, whether its apps are functions in their own processes or web servers. The test app of each
// runtime has the functions that are named here.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { RunListener, RunRequest, Runtime } from './runtime.ts';
import { type Call, reached } from './testing/calls.ts';
import { released } from './testing/released.ts';

/** Time limits for a test about time limits. Every other runtime has limits that it cannot reach, however busy the machine is. */
export interface ShortLimits {
  readonly timeoutMs?: number;
  readonly cancelGraceMs?: number;
}

/** A runtime of the test app, and the way to call its functions. */
export interface Subject {
  /** Creates a runtime without starting it. The limit of an item is 100 kB, and of a result 200 kB. */
  make(concurrency: number, limits?: ShortLimits): Runtime;
  /** Calls a function by its name. `params` is JSON text, or an object that becomes JSON text. */
  call(runtime: Runtime, deed: string, params?: object | string, paced?: boolean): Call;
  /** The code of a stream that fails after an item (`breaks_later`). */
  readonly broken: string;
  /** What the runtime's language makes of these parameters, as JSON text. Absent: the same text. */
  echoed?(text: string): string;
  /** Resolves when the app has printed `cleaned up` for this run, in its log or after its end. */
  cleanedUp(run: Call): Promise<void>;
}

/** The most items and bytes of a stream that arrive if no reader takes any. */
const WINDOW_ITEMS = 4_096;
const WINDOW_BYTES = 2 * 1024 * 1024;

/** Takes a paced run's items as they arrive. */
async function toItsEnd(run: Call): Promise<void> {
  for (let taken = run.count; run.ends === 0; taken = run.count) {
    run.running?.credit(taken);
    await run.until(() => run.count > taken || run.ends > 0);
  }
}

export function conformance(name: string, subject: Subject): void {
  describe.each([1, 100])(`${name} with %s runs at a time`, (concurrency) => {
    let runtime: Runtime;
    let folder: string;
    let calls: Call[] = [];
    const call = (deed: string, params: object | string = {}, paced = false): Call => {
      const made = subject.call(runtime, deed, params, paced);
      calls.push(made);
      return made;
    };

    async function started(limits?: ShortLimits): Promise<Runtime> {
      const made = subject.make(concurrency, limits);
      made.start();
      await reached(made, 'ready');
      return made;
    }

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'steps-'));
      runtime = await started();
    }, 60_000);
    afterAll(async () => {
      await runtime.close();
      await rm(folder, { recursive: true });
    });
    afterEach(async () => {
      const ends = await Promise.all(calls.map(({ ended }) => ended));
      expect(calls.map(({ ends: count }) => count)).toEqual(ends.map(() => 1));
      calls = [];
    });

    test('a runtime has as many free slots as it may have runs at a time', () => {
      expect(runtime.freeSlots).toBe(concurrency);
    });

    test('parameters and results are passed unchanged: large integers, 1.0, unicode', async () => {
      const text = '{"a":12345678901234567890123,"b":1.0,"c":"ü\u2028","__proto__":1}';
      const run = call('echo', text);
      expect(await run.result()).toBe(subject.echoed?.(text) ?? text);
      expect(await run.ended).toMatchObject({ state: 'succeeded', streamed: false, items: 0 });
    });

    test('the items of a stream arrive in order, and the stream succeeds', async () => {
      const run = call('count', { n: 5000 });
      expect(await run.ended).toMatchObject({ state: 'succeeded', streamed: true, items: 5000 });
      expect(run.items).toEqual(Array.from({ length: 5000 }, (_, i) => `item ${i}`));
    });

    test('a stream without items is a stream', async () => {
      expect(await call('count', { n: 0 }).ended).toMatchObject({ state: 'succeeded', streamed: true, items: 0 });
    });

    test('an item arrives before its app yields the next item', async () => {
      const run = call('step_by_step', { folder, n: 3 });
      for (let n = 1; n <= 3; n++) {
        await run.until(() => run.count >= n);
        expect(run.count).toBe(n);
        expect(run.ends).toBe(0);
        await writeFile(join(folder, `${n - 1}`), '');
      }
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 3 });
    });

    test('the parameters of a run that has begun are no longer in memory', async () => {
      let params: WeakRef<object> | undefined;
      const watched = Object.create(runtime, {
        run: {
          value: (request: RunRequest, listener: RunListener) => {
            params = new WeakRef(request.params.buffer);
            return runtime.run(request, listener);
          },
        },
      }) as Runtime;
      const steps = join(folder, 'released');
      await mkdir(steps);
      // The spaces make the parameters larger than the buffers that Node keeps in a pool.
      const run = subject.call(watched, 'step_by_step', `{"folder":"${steps}","n":1${' '.repeat(100_000)}}`);
      await run.until(() => run.count >= 1);
      expect(await released(params as unknown as WeakRef<object>)).toBe(true);
      await writeFile(join(steps, '0'), '');
      expect((await run.ended).state).toBe('succeeded');
    });

    test('a stream that fails after items delivers the items first', async () => {
      const run = call('breaks_later');
      expect(await run.ended).toMatchObject({ state: 'failed', items: 1, error: { code: subject.broken } });
      expect(run.items).toEqual(['1']);
    });

    test('an output over a limit is refused, after the items within the limit', async () => {
      expect((await call('large_result', { n: 300_000 }).ended).error?.code).toBe('output_too_large');
      expect(await call('large_item', { n: 100_001 }).ended).toMatchObject({
        items: 1,
        error: { code: 'output_too_large' },
      });
    });

    test('a paced stream may exceed the limit of a stream that is kept', async () => {
      const run = call('much', { n: 1000, size: 999 }, true);
      await toItsEnd(run);
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 1000 });
    });

    test('a stream pauses without credits, and continues with credits', async () => {
      const run = call('flood_large', { n: 120 }, true);
      const bytes = (): number => run.frames.reduce((sum, { blob }) => sum + blob.length, 0);
      await run.until(() => run.count > 0);
      // No event shows that no further item comes. So the test allows time for items.
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(run.count).toBeLessThanOrEqual(WINDOW_ITEMS);
      expect(bytes()).toBeLessThanOrEqual(WINDOW_BYTES);
      await toItsEnd(run);
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 120 });
    });

    test('a slow store pauses a stream, whatever credits the stream has', async () => {
      const run = call('flood_large', { n: 120 }, true);
      await run.until(() => run.count > 0);
      run.running?.pause();
      const before = run.count;
      run.running?.credit(before);
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(run.count - before).toBeLessThan(40);
      run.running?.resume();
      await toItsEnd(run);
      expect(await run.ended).toMatchObject({ state: 'succeeded', items: 120 });
    });

    test('a paused stream can be cancelled', async () => {
      const run = call('flood_large', { n: 120 }, true);
      await run.until(() => run.count > 0);
      run.running?.cancel('cancelled');
      expect((await run.ended).state).toBe('cancelled');
    });

    test('a cancel reaches a sleeping stream, which cleans up', async () => {
      const run = call('sleeper');
      await run.until(() => run.count >= 1);
      run.running?.cancel('cancelled');
      expect(await run.ended).toMatchObject({ state: 'cancelled', items: 1, error: { code: 'cancelled' } });
      await subject.cleanedUp(run);
    });

    test('a cancel at any time reaches no other run', async () => {
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

    test('a run over its time limit is stopped', async () => {
      const own = await started({ timeoutMs: 1_000 });
      const run = subject.call(own, 'sleeper');
      expect(await run.ended).toMatchObject({ state: 'timed_out', error: { code: 'timed_out' } });
      await subject.cleanedUp(run);
      await own.close();
    });

    test.each([
      ['exits', 'replica_crashed', 'code 3'],
      ['segfaults', 'replica_crashed', 'SIGSEGV'],
      ['killed', 'out_of_memory', 'killed'],
      ['crashes_after_an_item', 'replica_crashed', 'code 4'],
    ])('a process that dies (%s) ends its run as %s, and the next call works', async (deed, code, text) => {
      const run = call(deed);
      expect(await run.ended).toMatchObject({ state: 'failed', error: { code } });
      expect((await run.ended).error?.message).toContain(text);
      expect(await call('add', { a: 1 }).result()).toBe('3');
    });

    test('the output of a function is in the log of its run', async () => {
      const run = call('prints');
      expect((await run.ended).state).toBe('succeeded');
      expect(run.lines).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ stream: 'stdout', text: 'to stdout' }),
          expect.objectContaining({ stream: 'stderr', text: 'to stderr' }),
        ]),
      );
    });

    test('a drain lets open runs end, and refuses further runs', async () => {
      const own = await started();
      const steps = join(folder, 'drained');
      await mkdir(steps);
      const run = subject.call(own, 'step_by_step', { folder: steps, n: 1 });
      await run.until(() => run.count >= 1);
      const drained = own.drain();
      expect(own.freeSlots).toBe(0);
      await writeFile(join(steps, '0'), '');
      expect((await run.ended).state).toBe('succeeded');
      await drained;
      expect((await subject.call(own, 'nothing').ended).error?.code).toBe('unavailable');
    });
  });
}
