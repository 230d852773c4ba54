// Contract 3 and 5: resuming streams, and the pace of readers, over the whole stack.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { EventSource } from 'eventsource';
import { Caller } from '../client/caller.ts';
import { type CuttingProxy, cuttingProxy } from '../client/cutting-proxy.ts';
import type { EventReader } from '../client/event-reader.ts';
import { settledSize, until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

let stack: TestStack;
let caller: Caller;
let authorization: string;
beforeAll(async () => {
  // The window keeps the whole plain stream, because the bytes that stalled readers have taken depend on their sockets.
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/streams', STREAM_WINDOW_BYTES: '64MiB' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  authorization = `Bearer ${signToken(stack.jwtSecret, { project: 'demo', ttlS: 3600, more: {} })}`;
  await caller.ready('streams');
});
afterAll(() => stack.stop());

/** Starts an asynchronous run. */
async function started(fn: string, params: object): Promise<string> {
  const { text } = await caller.call(`streams/${fn}`, params, { query: '?async=true' });
  return (JSON.parse(text) as { run_id: string }).run_id;
}

interface Watched {
  readonly ids: number[];
  readonly data: string[];
  /** Resolves with the status at which the EventSource stopped. */
  readonly closed: Promise<number | undefined>;
}

/** Reads a run with an unmodified EventSource, which sends its token by a custom `fetch`. */
function watch(port: number, runId: string): Watched {
  const ids: number[] = [];
  const data: string[] = [];
  const source = new EventSource(`http://127.0.0.1:${port}/v4/demo/runs/${runId}/stream`, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization } }),
  });
  source.onmessage = (event) => {
    ids.push(Number(event.lastEventId));
    data.push(String(event.data));
  };
  const closed = new Promise<number | undefined>((resolve) => {
    source.onerror = (event) => {
      if (source.readyState === source.CLOSED) resolve(event.code);
    };
  });
  return { ids, data, closed };
}

const numbers = (n: number): number[] => Array.from({ length: n }, (_, k) => k + 1);

describe('a stock EventSource gets each item once despite many cuts, and stops at the 204:', () => {
  const N = 300;
  let proxy: CuttingProxy;
  afterEach(() => proxy.close());

  test.each([
    ['while the run is running', 0.004],
    ['after the run has ended', 0],
  ])('%s', async (_, seconds) => {
    let connections = 0;
    // A fixed sequence of places, so that each run of this test cuts at the same places.
    let place = 1;
    const anywhere = (): number => {
      place = (place * 16_807) % 2_147_483_647;
      return place % 20_000;
    };
    // The first connection lasts long enough for the first item and the short reconnection time. Later connections are cut anywhere, also in
    // the head of the answer or within an item.
    proxy = await cuttingProxy(stack.port, () => (connections++ === 0 ? 5_000 : 0) + anywhere());
    const runId = await started('resumable', { n: N, size: 2000, seconds });
    if (seconds === 0) await caller.ended(runId);
    const { ids, data, closed } = watch(proxy.port, runId);
    expect(await closed).toBe(204);
    expect(ids).toEqual(numbers(N));
    expect(data.map((text) => Number.parseInt(text, 10))).toEqual(numbers(N).map((n) => n - 1));
    expect(data.every((text) => /^\d+ [0-9a-f]{2000}$/.test(text))).toBe(true);
    expect(proxy.cuts).toBeGreaterThan(10);
  });
});

test('an EventSource recovers from the death of a gateway as from a cut', async () => {
  const N = 300;
  const gate = join(stack.marksDir, 'gateway-dies');
  const runId = await started('resumable', { n: N, size: 20, seconds: 0.01, gate });
  const { ids, closed } = watch(stack.port, runId);
  await until(() => ids.length > 20);
  await stack.kill('gateway');
  expect(ids.length).toBeLessThan(N);
  await writeFile(gate, '');
  expect(await closed).toBe(204);
  expect(ids).toEqual(numbers(N));
});

describe('the pace of a run', () => {
  const [N, SIZE] = [2500, 10_000];
  let marks = 0;
  const newMark = (): string => join(stack.marksDir, `paced-${++marks}`);
  const resume = async (runId: string): Promise<EventReader> => (await caller.takeUp(runId, 0)).events;

  test('with a plain stream follows its fastest reader, on any connection', async () => {
    const mark = newMark();
    const { events: stalled, runId } = await caller.stream('streams/counted', { mark, n: N, size: SIZE });
    expect(await stalled.next()).toMatch(/^data: 0 /);
    const second = await resume(runId);
    expect(await second.next()).toMatch(/^id: 1\ndata: 0 /);
    // Neither reader reads, so the generator waits.
    expect(await settledSize(mark)).toBeLessThan(N);
    expect((await second.rest()).length).toBe(N - 1);
    expect(await settledSize(mark)).toBe(N);
    stalled.leave();
  });

  test('that is promised follows no reader', async () => {
    const mark = newMark();
    const runId = await started('counted', { mark, n: N, size: SIZE });
    const stalled = await resume(runId);
    expect(await stalled.next()).toMatch(/^id: 1\ndata: 0 /);
    expect(await caller.ended(runId)).toMatchObject({ status: 'succeeded', items: N });
    expect((await stalled.rest()).length).toBe(N - 1);
  });
});
