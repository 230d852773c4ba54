// The functions that the benchmarks call, in JavaScript.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

export const echo = (params) => params;

/** Yields n items of exactly `size` bytes as fast as the service takes them. */
export function* items({ n = 1000, size = 64 }) {
  const tail = `.${'x'.repeat(size - 9)}`;
  for (let i = 1; i <= n; i++) yield String(i).padStart(8, '0') + tail;
}

/** Yields one item every `every_ms`, with the time of the yield (CLOCK_MONOTONIC, ns). */
export async function* paced({ n = 10, every_ms = 100 }, { signal }) {
  for (let i = 0; i < n; i++) {
    await pause(every_ms, undefined, { signal });
    yield String(process.hrtime.bigint());
  }
}

export async function* awaits(_params, { signal }) {
  yield 'begun';
  await pause(600_000, undefined, { signal });
}

/** Never answers. */
const server = createServer(() => {});

export function setup() {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
}

export async function* fetches(_params, { signal }) {
  yield 'begun';
  await fetch(`http://127.0.0.1:${server.address().port}/`, { signal });
}

/** Never gives the event loop a turn again: the process is replaced after `cancel_grace`. */
export function* loops() {
  yield 'begun';
  for (;;);
}
export function* yields() {
  for (;;) yield 'x'.repeat(64);
}
