// Functions that end their process or leave a rejected promise.
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';

interface Context {
  readonly signal: AbortSignal;
}

export const add = ({ a, b = 2 }: { a: number; b?: number }) => a + b;
export const pid = () => process.pid;

export async function* waits(_params: object, { signal }: Context) {
  yield process.pid;
  await pause(600_000, undefined, { signal });
}

export async function exits() {
  process.exit(3);
}
export async function throws_later() {
  setTimeout(() => {
    throw new Error('later');
  }, 1);
  await pause(600_000);
}
export function aborts() {
  process.abort();
}

export async function rejects() {
  void Promise.reject(new RangeError('nobody waits'));
  await pause(600_000);
}
export async function rejects_later() {
  void pause(5).then(() => {
    throw new RangeError('nobody waits');
  });
  await pause(600_000);
}

const outside = Promise.withResolvers<void>();
const timer = setInterval(() => {
  if (called) outside.reject(new RangeError('nobody waits'));
}, 5);
timer.unref();
let called = false;
export function rejects_outside() {
  called = true;
  return 'called';
}

export const heap_limit = () => getHeapStatistics().heap_size_limit;
export function fills_the_heap() {
  const kept: number[][] = [];
  // Numbers fill the heap at once. The collector would visit small objects again and again.
  for (;;) kept.push(new Array<number>(100_000).fill(0.5));
}

export function* loops() {
  yield 'looping';
  for (;;);
}

export async function sleeps(_params: object, { signal }: Context) {
  console.log('sleeps');
  await pause(600_000, undefined, { signal });
}
export async function fetches(_params: object, { signal }: Context) {
  const server = createServer(() => console.log('fetches'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { signal });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Returns the sockets of a child beside its standard streams. */
export const sockets_of_a_child = () =>
  execFileSync('ls', ['-l', '/proc/self/fd'])
    .toString()
    .split('\n')
    .filter((line) => line.includes('socket:') && !/ [012] -> /.test(line));

export function* yields_and_loops({ n = 1 }) {
  for (let i = 0; i < n; i++) yield i;
  for (;;);
}
