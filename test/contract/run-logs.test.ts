// Contract 5: a run's log has exactly its own lines, in order, within its limit, and complete at the run's end. A hundred runs share one process.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { RUN_LOG_MAX_BYTES } from '../stack/shared-settings.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('run-logs', ['speaking']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

interface Log {
  readonly ended: boolean;
  readonly cut: number;
  readonly logs: readonly { seq: number; stream: string; text: string }[];
}

async function logOf(runId: string): Promise<Log> {
  const answer = await caller.request(`${caller.path}/runs/${runId}/logs`, { method: 'GET' });
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Log;
}
const textsOf = async (runId: string): Promise<string[]> => (await logOf(runId)).logs.map(({ text }) => text);

/** Calls a function. Returns the run's id after the answer, when the log has to be complete. */
async function called(fn: string, params: object = {}): Promise<string> {
  return String((await caller.call(`speaking/${fn}`, params)).headers['x-request-id']);
}

const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test('each of a hundred concurrent runs in one process keeps all its lines, in order', async () => {
  const n = 40;
  await Promise.all(
    numbers(100).map(async (i) => {
      const name = `run-${i}`;
      const runId = await called(i % 2 === 0 ? 'speaks' : 'speaks_async', { name, n });
      expect(await logOf(runId)).toMatchObject({
        ended: true,
        cut: 0,
        logs: numbers(n).flatMap((k) => [
          { stream: 'stdout', text: `${name} prints ${k}`, seq: 2 * k + 1 },
          { stream: 'stderr', text: `WARNING ${name} logs ${k}`, seq: 2 * k + 2 },
        ]),
      });
    }),
  );
});

test('lines written outside the interpreter belong to the run if it is the only run of its process', async () => {
  const texts = await textsOf(await called('speaks_raw'));
  expect([...texts].sort()).toEqual(['first', 'from C', 'from a child']);
});

test('lines written outside the interpreter go to the worker’s log if the process has several runs', async () => {
  const gate = join(stack.marksDir, 'raw-gate');
  const start = async (): Promise<string> => {
    const answer = await caller.call('speaking/speaks_raw', { gate }, { query: '?async=true' });
    return String(answer.headers['x-request-id']);
  };
  const alone = await start();
  await until(async () => (await textsOf(alone)).includes('from a child'));
  const shown = (): number => stack.logs().split('from a child').length;
  const before = shown();
  const second = await start();
  await until(() => shown() > before);
  await writeFile(gate, '');
  await Promise.all([caller.ended(alone), caller.ended(second)]);
  expect(await textsOf(alone)).toHaveLength(3);
  expect(await textsOf(second)).toEqual(['first']);
});

test('the traceback of a function that raises is in its log', async () => {
  const runId = await called('raises');
  const texts = await textsOf(runId);
  expect(texts[0]).toBe('before');
  expect(texts).toContain('Traceback (most recent call last):');
  expect(texts.at(-1)).toBe('ValueError: no luck');
  expect((await logOf(runId)).logs.at(-1)?.stream).toBe('stderr');
});

test('a run that prints too much keeps its newest lines and the number of dropped lines, and other calls are answered', async () => {
  const n = 200_000;
  let over = false;
  const flood = called('floods', { n }).finally(() => {
    over = true;
  });
  for (let calls = 0; !over || calls < 3; calls++)
    expect((await caller.call('speaking/quick', { value: calls })).status).toBe(200);
  const { cut, logs } = await logOf(await flood);
  expect(logs.at(-1)).toMatchObject({ seq: n, text: expect.stringMatching(`^line ${n - 1} `) });
  expect(cut).toBe(n - logs.length);
  logs.forEach(({ seq }, at) => {
    expect(seq).toBe(cut + at + 1);
  });
  const bytes = logs.reduce((sum, { text }) => sum + text.length, 0);
  expect(bytes).toBeLessThanOrEqual(RUN_LOG_MAX_BYTES);
  expect(logs.length).toBeGreaterThan(30);
});

test('a stream with events=full has the log lines in order, and `done` after the last line', async () => {
  const { events } = await caller.stream('speaking/streams', { n: 3 }, { query: '?events=full' });
  const names = (await events.rest()).map((event) => {
    const data = /^data: (.*)$/m.exec(event)?.[1] ?? '';
    return `${/^event: (\w+)$/m.exec(event)?.[1]} ${/before \d/.exec(data)?.[0] ?? ''}`.trim();
  });
  expect(names.filter((name) => name.startsWith('log'))).toEqual(['log before 0', 'log before 1', 'log before 2']);
  expect(names.filter((name) => name === 'item')).toHaveLength(3);
  expect(names.at(-1)).toBe('done');
});
