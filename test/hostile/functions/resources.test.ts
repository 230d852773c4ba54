// docs/security/functions.md, "What a function can do to others": a function exhausts files, memory, the interpreter or its log.
import { alive } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Answer } from '../../client/http.ts';
import { until } from '../../client/until.ts';
import { failed, type HostileStack, hostileStack } from './hostile-apps.ts';
import { memoryOf } from './processes.ts';

let hostile: HostileStack;
beforeAll(async () => {
  hostile = await hostileStack();
});
afterAll(() => hostile.stack.stop());

const pidOf = async (app: string): Promise<number> => (await hostile.called(`${app}/pid`)).result as number;

test('a function that leaks files gets an OSError, and its process is replaced after its other runs end', async () => {
  await hostile.beside(async () => {
    const before = await pidOf('hostile');
    const neighbour = await hostile.caller.stream('hostile/ticks', { n: 40 });
    await neighbour.events.next();
    expect(await hostile.called('hostile/leaks_files')).toMatchObject(failed(500, 'function_error', 'OSError'));
    expect(await pidOf('hostile')).not.toBe(before);
    expect(await neighbour.events.rest()).toHaveLength(39);
    await until(() => !alive(before));
  });
});

test('an app may use the memory that `[hardware] memory` allows', async () => {
  await hostile.beside(async () => {
    expect(await hostile.called('small/grows', { mebibytes: 60, seconds: 2 })).toMatchObject({
      httpStatus: 200,
      result: 60,
    });
  });
});

test.each(['grows', 'grows_below'])(
  'an app over its memory (%s) loses its process; all runs of the process fail as out_of_memory',
  async (fn) => {
    await hostile.beside(async () => {
      const neighbour = await hostile.caller.stream('small/waits');
      const before = Number((await neighbour.events.next())?.replace('data: ', ''));
      const over = await hostile.called(`small/${fn}`, { mebibytes: 256, seconds: 600 });
      expect(over).toMatchObject(failed(500, 'out_of_memory'));
      expect((await neighbour.events.rest()).at(-1)).toContain('"code":"out_of_memory"');
      expect(alive(before)).toBe(false);
      expect(await pidOf('small')).not.toBe(before);
    });
  },
);

test('a loop in native code that holds the interpreter times out the runs of its process, and the process is replaced', async () => {
  await hostile.beside(async () => {
    const loop = await hostile.caller.stream('brief/holds_the_lock');
    const before = Number((await loop.events.next())?.replace('data: ', ''));
    const neighbour = hostile.called('brief/pid');
    expect((await loop.events.rest()).at(-1)).toContain('"code":"timed_out"');
    expect(await neighbour).toMatchObject(failed(504, 'timed_out'));
    expect(await pidOf('brief')).not.toBe(before);
    await until(() => !alive(before));
  });
});

/** The limit of a run's log, bytes. The worker keeps the newest output up to this limit. */
const KEPT_LOG = 256 * 1024;
const MORE_MEMORY = 256 * 1024 * 1024;

test.each([
  ['line after line', 'prints_lines'],
  ['one endless line', 'prints_one_line'],
  ['bytes that are not text', 'prints_binary'],
  ['by a child', 'prints_by_a_child'],
])(
  'a function that prints without end (%s) can be cancelled, its newest lines are kept, and other runs do not wait',
  async (_, fn) => {
    await hostile.beside(async () => {
      const before = await memoryOf(hostile.stack.pid('worker'));
      const { run_id } = await hostile.called(`hostile/${fn}`, {}, '?async=true');
      const logged = (): Promise<Answer> => hostile.caller.request(`/v4/demo/runs/${run_id}/logs`, { method: 'GET' });
      // The stream lasts longer than the function needs to fill its log.
      const neighbour = await hostile.caller.stream('hostile/ticks', { n: 30 });
      expect(await neighbour.events.rest()).toHaveLength(30);
      await until(async () => (await logged()).text.length > KEPT_LOG / 4);
      await hostile.caller.cancel(run_id);
      expect((await hostile.caller.ended(run_id)).status).toBe('cancelled');
      const { text } = await logged();
      const { logs } = JSON.parse(text) as { logs: { text: string }[] };
      expect(logs.length).toBeGreaterThan(0);
      expect(logs.reduce((sum, line) => sum + line.text.length, 0)).toBeLessThanOrEqual(KEPT_LOG);
      expect((await memoryOf(hostile.stack.pid('worker'))) - before).toBeLessThan(MORE_MEMORY);
    });
  },
);
