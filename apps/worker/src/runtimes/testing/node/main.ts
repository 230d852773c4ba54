// Functions for the conformance suites, in TypeScript as Node strips it.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

interface Context {
  readonly signal: AbortSignal;
  readonly runId: string;
  readonly traceparent: string | undefined;
  log(...values: unknown[]): void;
}

/** Returns its parameters.
 *
 * Not the first line. */
export const echo = (params: object) => params;

export function setup() {
  console.log('set up');
}

export const nothing = () => undefined;
export const add = ({ a, b = 2 }: { a: number; b?: number }) => a + b;
add.schema = {
  type: 'object',
  properties: { a: { type: 'integer' }, b: { type: 'integer', default: 2 } },
  required: ['a'],
  additionalProperties: false,
};
export const named = ({ run_id }: { run_id?: string }, { runId }: Context) => run_id ?? runId;
export const with_status = ({ status }: { status: unknown }) => ({ status_code: status });

/** An error like those of web frameworks. */
class HttpError extends Error {
  constructor(fields: object) {
    super('the text');
    Object.assign(this, fields);
  }
}
export function raises_status(fields: object) {
  throw new HttpError(fields);
}
export function raises_status_badly() {
  class Bad extends Error {
    get status_code() {
      throw new Error('no');
    }
  }
  throw new Bad('bad');
}
export function* yields_status({ status }: { status: number }) {
  yield { status_code: status };
}

export function* count({ n = 3 }) {
  for (let i = 0; i < n; i++) yield `item ${i}`;
}

export function* mixed() {
  yield 'text';
  yield { json: 1 };
  yield 'two\nlines';
  yield '';
  yield 1.5;
  yield 'data: {}\n\n';
}

async function exists(path: string) {
  while (!existsSync(path)) await pause(10);
}

/** Continues after an item when the file with the item's number exists. */
export async function* step_by_step({ folder, n = 3 }: { folder: string; n?: number }) {
  for (let i = 0; i < n; i++) {
    yield i;
    await exists(join(folder, String(i)));
  }
}

/** Ends when `n` runs of it are open at the same time. */
export async function* meets({ folder, name, n }: { folder: string; name: string; n: number }) {
  yield 'waits';
  writeFileSync(join(folder, name), '');
  while (readdirSync(folder).length < n) await pause(10);
  yield 'met';
}

export function raises({ text = 'no' }) {
  throw new TypeError(text);
}

export function* breaks_later() {
  yield 1;
  throw new Error('later');
}

export const not_json = () => /a/;
export const not_a_number = () => Number.NaN;
export function* raw_bytes() {
  yield 'fine';
  yield Buffer.from([0xff]);
}
export const large_result = ({ n }: { n: number }) => 'x'.repeat(n);
export function* large_item({ n }: { n: number }) {
  yield 'fine';
  yield 'x'.repeat(n);
}
export function* much({ n, size }: { n: number; size: number }) {
  for (let i = 0; i < n; i++) yield 'x'.repeat(size);
}
export const surrogate = () => 'a\ud800b';
export function* surrogate_items() {
  yield 'a\ud800b';
  yield ['a\ud800b'];
}

export function* prints() {
  console.log('to stdout');
  console.error('to stderr');
  yield 1;
}

export async function* sleeper(_params: object, { signal }: Context) {
  try {
    yield 'asleep';
    await pause(600_000, undefined, { signal });
  } finally {
    console.log('cleaned up');
  }
}
export async function* sleeper_that_takes_time(_params: object, { signal }: Context) {
  try {
    yield 'asleep';
    await pause(600_000, undefined, { signal });
  } finally {
    await pause(100);
    console.log('cleaned up');
  }
}
export const async_sleeper = sleeper;

/** Never gives the event loop a turn again. */
export function* looper() {
  yield 'looping';
  for (;;);
}

/** Ignores its cancel, and leaves the event loop to others. */
export async function* stubborn() {
  yield 'stubborn';
  for (;;) await pause(600_000);
}

/** Waits in a system call that nothing interrupts. */
export async function* blocked() {
  yield 'blocked';
  await pause(5);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000);
}

export async function brief({ ms }: { ms: number }, { signal }: Context) {
  await pause(ms, undefined, { signal });
  return 'whole';
}

let produced_items = 0;

export function* flood({ n = 10_000 }) {
  for (let i = 0; i < n; i++) {
    produced_items = i + 1;
    yield `item ${i}`;
  }
}
export function* flood_large({ n = 1000 }) {
  for (let i = 0; i < n; i++) yield 'x'.repeat(65_536);
}

export function exits() {
  process.exit(3);
}
export async function segfaults() {
  process.kill(process.pid, 'SIGSEGV');
  await pause(600_000);
}
export async function killed() {
  process.kill(process.pid, 'SIGKILL');
  await pause(600_000);
}
export async function* crashes_after_an_item() {
  yield 'one';
  await pause(50);
  process.exit(4);
}

export const pid = () => process.pid;

export const _private = () => 1;

export const produced = () => produced_items;

export class Countdown {
  #n = 3;
  [Symbol.iterator]() {
    return this;
  }
  next() {
    return this.#n === 0 ? { done: true, value: undefined } : { done: false, value: --this.#n };
  }
}
export const iterator = () => new Countdown();

const loud =
  <T extends unknown[], R>(fn: (...args: T) => R) =>
  (...args: T) =>
    fn(...args);
export const decorated = loud(function* () {
  yield 1;
  yield 2;
});
export const decorated_with_wraps = loud(({ x }: { x: unknown }) => x);

export async function async_value({ x }: { x: unknown }) {
  await pause(0);
  return x;
}
export async function* async_items() {
  for (let i = 0; i < 3; i++) {
    await pause(0);
    yield i;
  }
}
export async function gives_a_generator() {
  return count({ n: 3 });
}
export const type_error_inside = () => (undefined as unknown as { length: number }).length;

export function recurses({ through_c = false }) {
  const deeper = (n: number): number => (through_c ? ([n].map(deeper)[0] as number) : deeper(n + 1));
  return deeper(0);
}

export const environment = () => process.env;

/** Ignores its cancel, and creates a file when it gets SIGTERM. */
export async function* notes_signals({ path }: { path: string }) {
  process.on('SIGTERM', () => writeFileSync(path, ''));
  yield* stubborn();
}
