// Contract 5, `/logs`: what a function prints or logs is its run's, exactly, while a hundred runs share one process; in order, bounded, there at the run's end.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

const LOG_BYTES = 20_000;

let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  stack = await startTestStack({
    env: { WORKER_APPS: 'demo/speaking', RUN_LOG_MAX_BYTES: String(LOG_BYTES) },
  });
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('speaking');
});
afterAll(() => stack.stop());

interface Log {
  readonly ended: boolean;
  readonly cut: number;
  readonly logs: readonly { seq: number; stream: string; text: string }[];
}

async function logOf(runId: string): Promise<Log> {
  const answer = await caller.request(`/v4/demo/runs/${runId}/logs`, { method: 'GET' });
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Log;
}
const textsOf = async (runId: string): Promise<string[]> => (await logOf(runId)).logs.map(({ text }) => text);

/** Calls, waits for the answer, and gives the run's id: its log has to be whole by then. */
async function called(fn: string, params: object = {}): Promise<string> {
  return String((await caller.call(`speaking/${fn}`, params)).headers['x-request-id']);
}

const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test('a hundred runs in one process print and log at once: every line is at its run, in order, none is lost', async () => {
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

test('lines that go past the interpreter are the run’s where it is the only one', async () => {
  const texts = await textsOf(await called('speaks_raw'));
  expect([...texts].sort()).toEqual(['first', 'from C', 'from a child']);
});

test('and the app’s own, in the worker’s log, where there are several', async () => {
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

test('a flood keeps its newest lines, the cut is told, and calls beside it are answered', async () => {
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
  expect(bytes).toBeLessThanOrEqual(LOG_BYTES);
  expect(logs.length).toBeGreaterThan(30);
});

test('events=full tells the lines in order, and `done` after the last of them', async () => {
  const { events } = await caller.stream('speaking/streams', { n: 3 }, { query: '?events=full' });
  const names = (await events.rest()).map((event) => {
    const data = /^data: (.*)$/m.exec(event)?.[1] ?? '';
    return `${/^event: (\w+)$/m.exec(event)?.[1]} ${/before \d/.exec(data)?.[0] ?? ''}`.trim();
  });
  expect(names.filter((name) => name.startsWith('log'))).toEqual(['log before 0', 'log before 1', 'log before 2']);
  expect(names.filter((name) => name === 'item')).toHaveLength(3);
  expect(names.at(-1)).toBe('done');
});
