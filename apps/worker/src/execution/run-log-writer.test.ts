// Contract 5, `/logs`: writing printed lines, with a scripted store.
import { ServiceError } from '@inference-proxy/contracts';
import type { LogPart } from '@inference-proxy/store';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { PrintedLines } from '../runtimes/printed-lines.ts';
import { type RunLogWriter, RunLogWriters } from './run-log-writer.ts';

const MAX_BYTES = 10_000;

/** A store that numbers and keeps lines like the log script. Tests can delay and change its answers. */
class ScriptedStore {
  readonly kept: string[] = [];
  readonly parts: LogPart[] = [];
  hold: Promise<unknown> = Promise.resolve();
  /** The answers of the next calls, one for each call. */
  readonly script: (() => 'ok' | 'lost')[] = [];
  #last = 0;
  #lines = 0;

  log = async (_project: string, part: LogPart): Promise<'ok' | 'lost'> => {
    this.parts.push(part);
    const { number = 0, dropped = 0, lines } = part;
    const answer = this.script.shift();
    if (answer === refused) answer();
    if (number > this.#last) {
      this.#last = number;
      this.#lines += dropped;
      for (const { stream, text } of lines) this.kept.push(`${++this.#lines} ${stream[3]} ${text}`);
    }
    await this.hold;
    return answer ? answer() : 'ok';
  };
}

const unanswered = (): never => {
  throw new ServiceError('unavailable', 'The run store did not answer in time.');
};
const refused = (): never => {
  throw new ServiceError('overloaded', 'The run store is full.');
};

let store: ScriptedStore;
let log: RunLogWriter;
const shown: string[] = [];
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick', 'setImmediate'] });
  store = new ScriptedStore();
  shown.length = 0;
  const note = (_fields: object, text: string): number => shown.push(text);
  const logs = new RunLogWriters({ store, maxBytes: MAX_BYTES, logger: { info: note, warn: note, error: note } });
  log = logs.of({ project: 'demo', runId: 'run', token: 'w:1' }, {});
});
afterEach(() => {
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

const print = (...texts: string[]): void => log.add(PrintedLines.now('stdout', texts));
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('the first lines are written at once, and the lines soon after them together and in order', async () => {
  print('a');
  log.add(PrintedLines.now('stderr', ['b', '']));
  await turn();
  expect(store.kept).toEqual(['1 o a', '2 e b', '3 e ']);
  print('c');
  await turn();
  print('d');
  await turn();
  expect(store.parts).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(20);
  expect(store.parts.slice(1).map(({ lines }) => lines.map(({ text }) => text))).toEqual([['c', 'd']]);
  await log.finish();
});

test('the end of a run waits only for the lines of the run', async () => {
  print('a');
  await turn();
  const { promise, resolve } = Promise.withResolvers<void>();
  store.hold = promise;
  print('last');
  let finished = false;
  const finish = log.finish().then(() => {
    finished = true;
  });
  await turn();
  expect(store.kept).toEqual(['1 o a', '2 o last']);
  expect(finished).toBe(false);
  resolve();
  await finish;
});

test('while a slow store is awaited, the newest lines are kept, and the next part has the number of dropped lines', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  store.hold = promise;
  print('first');
  await turn();
  for (let n = 2; n <= 5_000; n++) print(`line ${n}`);
  resolve();
  await log.finish();
  const [head, next] = store.kept;
  const oldest = Number(next?.split(' ')[0]);
  expect(head).toBe('1 o first');
  expect(next).toBe(`${oldest} o line ${oldest}`);
  expect(store.kept.slice(1)).toEqual(
    Array.from({ length: 5_001 - oldest }, (_, i) => `${oldest + i} o line ${oldest + i}`),
  );
  const kept = store.kept.slice(1).reduce((sum, line) => sum + line.length + 16, 0);
  expect(kept).toBeGreaterThan(MAX_BYTES * 0.7);
  expect(kept).toBeLessThan(MAX_BYTES * 1.2);
});

test('lines that the function’s process dropped are counted too', async () => {
  print('a');
  log.add(new PrintedLines(Buffer.from('o1 z'), 1, 24));
  await log.finish();
  expect(store.kept).toEqual(['1 o a', '26 o z']);
});

test('many lines are written in parts that are a small share of the log', async () => {
  print(...Array.from({ length: 2_000 }, (_, n) => `${n} ${'x'.repeat(40)}`));
  await log.finish();
  expect(store.kept).toHaveLength(2_000);
  for (const { lines } of store.parts)
    expect(JSON.stringify(lines.map(({ text }) => text)).length).toBeLessThan(20_000);
});

test('lines whose answer was lost are written again, and the log has them once', async () => {
  store.script.push(unanswered);
  print('a', 'b');
  await turn();
  print('c');
  await jest.advanceTimersByTimeAsync(1_000);
  await log.finish();
  expect(store.kept).toEqual(['1 o a', '2 o b', '3 o c']);
  expect(store.parts).toHaveLength(3);
});

test('a full store causes a counted hole in the log and delays nothing', async () => {
  store.script.push(refused);
  print('a', 'b');
  await turn();
  print('c');
  await log.finish();
  expect(store.kept).toEqual(['3 o c']);
});

test('the end of a run waits at most five seconds for a store that does not answer', async () => {
  store.script.push(...Array.from({ length: 100 }, () => unanswered));
  print('a');
  const finish = log.finish();
  await jest.advanceTimersByTimeAsync(10_000);
  await finish;
  expect(shown.at(-1)).toMatch(/missing in its log/);
  print('later');
  await turn();
  expect(store.parts.some(({ lines }) => lines.some(({ text }) => text === 'later'))).toBe(false);
});

test('an attempt that lost its run writes no more lines', async () => {
  store.script.push(() => 'lost');
  print('a');
  await turn();
  print('b');
  await log.finish();
  expect(store.parts).toHaveLength(1);
});

test('a flood of lines is written at the limited rate and shown at 500 lines a second', async () => {
  for (let round = 0; round < 50; round++) {
    print(...Array.from({ length: 300 }, (_, n) => `${round} ${n}`));
    await jest.advanceTimersByTimeAsync(10);
  }
  const bytes = store.parts.reduce(
    (sum, { lines }) => sum + lines.reduce((size, { text }) => size + text.length + 16, 0),
    0,
  );
  expect(bytes).toBeLessThan(MAX_BYTES + 512 * 500);
  expect(store.parts.length).toBeLessThan(30);
  expect(shown.length).toBeLessThanOrEqual(502);
  await log.finish();
  expect(shown.at(-1)).toMatch(/dropped/);
});
