// Contract 5, "Logs: `GET /runs/{run_id}/logs`": lines are kept with their run, also while a hundred runs share one process.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { EventReader } from '../client/event-reader.ts';
import type { Answer } from '../client/http.ts';
import { until } from '../client/until.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('logs', ['printing']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

interface Log {
  readonly run_id: string;
  readonly ended: boolean;
  readonly cut: number;
  readonly logs: readonly { seq: number; stream: string; time: string; text: string }[];
}

const runOf = (answer: Answer): string => String(answer.headers['x-request-id']);
const path = (runId: string): string => `${caller.path}/runs/${runId}/logs`;
const logOf = async (runId: string): Promise<Log> =>
  JSON.parse((await caller.request(path(runId), { method: 'GET' })).text) as Log;
const textsOf = ({ logs }: Log): string[] => logs.map(({ text }) => text);
/** Resolves with the log when it has `n` lines, because lines can reach the store shortly after the run's end. */
const withLines = (runId: string, n: number): Promise<Log> =>
  until(async () => {
    const log = await logOf(runId);
    return log.cut + log.logs.length >= n && log;
  });

test('a log has its lines in order, with number, stream and time', async () => {
  const before = Date.now();
  const lines = ['one', '', 'naïve 東京 🚀', '"quoted"', 'a\tb'];
  const runId = runOf(await caller.call('printing/says', { lines }));
  const log = await withLines(runId, lines.length);
  expect(log).toMatchObject({ run_id: runId, ended: true, cut: 0 });
  expect(textsOf(log)).toEqual(lines);
  expect(log.logs.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
  for (const { time, stream } of log.logs) {
    expect(stream).toBe('stdout');
    expect(Date.parse(time)).toBeGreaterThanOrEqual(before - 1);
    expect(Date.parse(time)).toBeLessThanOrEqual(Date.now() + 1);
  }
});

test('a line names its stream: stdout, or stderr, which logging uses', async () => {
  const runId = runOf(await caller.call('printing/both', { text: 'said' }));
  const { logs } = await withLines(runId, 3);
  expect(logs).toMatchObject([
    { stream: 'stdout', text: 'said on stdout' },
    { stream: 'stderr', text: 'said on stderr' },
    { stream: 'stderr', text: expect.stringContaining('said by logging') },
  ]);
});

test.each(['slowly', 'threaded'])(
  'a hundred runs of %s share a process, and each run has its own lines',
  async (fn) => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => caller.call(`printing/${fn}`, { name: `run ${n}`, n: 20 })),
    );
    for (const [n, answer] of answers.entries()) {
      const log = await withLines(runOf(answer), 20);
      expect(textsOf(log)).toEqual(Array.from({ length: 20 }, (_, k) => `run ${n} ${k}`));
    }
  },
);

test('a reader that follows a log gets each line when it is printed, and the stream ends with the run', async () => {
  const folder = join(stack.marksDir, 'followed');
  await mkdir(folder);
  const runId = runOf(await caller.call('printing/gated', { folder, n: 3 }, { query: '?async=true' }));
  const answer = await caller.open(`${path(runId)}?follow=true`, { method: 'GET' });
  expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  const events = new EventReader(answer);
  for (const k of [0, 1, 2]) {
    await writeFile(join(folder, String(k)), '');
    const [id, name, data] = (await events.next())?.split('\n') ?? [];
    expect([id, name]).toEqual([`id: ${k + 1}`, 'event: log']);
    expect(JSON.parse(data?.replace('data: ', '') ?? '')).toEqual({
      stream: 'stdout',
      time: expect.stringMatching(/Z$/),
      text: `line ${k}`,
    });
  }
  expect(await events.next()).toBeUndefined();
  expect((await caller.lookUp(runId)).status).toBe('succeeded');
});

test('the log has the lines of an interrupted function, and the lines before a failure', async () => {
  const { events, runId } = await caller.stream('printing/tidy');
  expect(await events.next()).toBe('data: begun');
  events.leave();
  expect(textsOf(await withLines(runId, 2))).toEqual(['begun', 'tidied']);
  const failed = runOf(await caller.call('printing/fails'));
  expect(textsOf(await withLines(failed, 1))[0]).toBe('before');
});

test('a log keeps its newest lines and reports the number of dropped lines', async () => {
  const lines = Array.from({ length: 200 }, (_, n) => `${n} `.padEnd(500, 'x'));
  const runId = runOf(await caller.call('printing/says', { lines }));
  const log = await withLines(runId, lines.length);
  expect(log.cut).toBeGreaterThan(100);
  expect(textsOf(log)).toEqual(lines.slice(log.cut));
  expect(log.logs[0]?.seq).toBe(log.cut + 1);
  const answer = await caller.open(`${path(runId)}?follow=true`, { method: 'GET' });
  const [cut, ...rest] = await new EventReader(answer).rest();
  expect(cut).toBe(`event: cut\ndata: {"lines":${log.cut}}`);
  expect(rest).toHaveLength(log.logs.length);
});
