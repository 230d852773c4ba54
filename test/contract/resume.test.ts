// Contract 3 and 5: resuming streams, and the pace of readers, over the whole stack.
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type CuttingProxy, cuttingProxy } from '../client/cutting-proxy.ts';
import type { EventReader } from '../client/event-reader.ts';
import { settledSize } from '../client/until.ts';
import { watch } from '../client/watch.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('resume', ['streams']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

/** Starts an asynchronous run. */
async function started(fn: string, params: object): Promise<string> {
  const { text } = await caller.call(`streams/${fn}`, params, { query: '?async=true' });
  return (JSON.parse(text) as { run_id: string }).run_id;
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
    const { ids, data, closed } = watch(caller, runId, proxy.port, { hurried: true });
    expect(await closed).toBe(204);
    expect(ids).toEqual(numbers(N));
    expect(data.map((text) => Number.parseInt(text, 10))).toEqual(numbers(N).map((n) => n - 1));
    expect(data.every((text) => /^\d+ [0-9a-f]{2000}$/.test(text))).toBe(true);
    expect(proxy.cuts).toBeGreaterThan(10);
  });
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
