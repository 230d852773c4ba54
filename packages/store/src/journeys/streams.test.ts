// Contract 3 and Contract 5: many readers of one run, on any gateway, from any position; pace, window, and readers that fall behind.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { GatewayStore, RunEvent, RunReader, TakenRun, WorkerStore } from '../index.ts';
import { projectPrefix } from '../keys.ts';
import { append, call, collect, itemsOf, RealStore, succeed, takeOne, until } from './real-store.ts';

const PROJECT = 'demo';
const WINDOW = 64 * 1024;
const record = (id: string): string => `${projectPrefix(PROJECT)}run:${id}`;
let store: RealStore;
let [here, there]: GatewayStore[] = [];
let worker: WorkerStore;
beforeAll(async () => {
  store = await RealStore.open();
  [here, there] = [store.gateway('g1'), store.gateway('g2')];
  worker = await store.worker('w1', PROJECT, { windowBytes: WINDOW });
});
afterAll(() => store.close());

async function streaming(more: Parameters<typeof call>[1] = {}): Promise<{ run: TakenRun; reader: RunReader }> {
  const { accepted, reader } = (here as GatewayStore).acceptor.accept(
    call(PROJECT, { paced: true, absentMs: 0, ...more }),
    'items',
  );
  await accepted;
  return { run: await takeOne(worker, PROJECT), reader: reader as RunReader };
}
const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => String(from + n));

test('readers get every item once, from any position, live or after the end, on either gateway', async () => {
  const { run, reader } = await streaming();
  const all = collect(reader);
  await append(worker, run, 1, ...numbers(1, 3));
  const live = [0, 1, 3].flatMap((cursor) =>
    [here, there].map(
      (gateway) => [cursor, collect((gateway as GatewayStore).read(PROJECT, run.runId, 'items', cursor))] as const,
    ),
  );
  await append(worker, run, 4, '4');
  await append(worker, run, 5, '5', '6');
  await succeed(worker, run, 6);
  expect(itemsOf(await all)).toEqual(numbers(1, 6));
  for (const [cursor, events] of live) expect(itemsOf(await events)).toEqual(numbers(cursor + 1, 6));
  for (let cursor = 0; cursor <= 6; cursor++)
    expect(itemsOf(await collect((there as GatewayStore).read(PROJECT, run.runId, 'items', cursor)))).toEqual(
      numbers(cursor + 1, 6),
    );
});

test('a reader from beyond the end of an ended run gets its outcome', async () => {
  const { run, reader } = await streaming();
  const all = collect(reader);
  await append(worker, run, 1, 'a');
  await succeed(worker, run, 1);
  await all;
  const events = await collect((there as GatewayStore).read(PROJECT, run.runId, 'items', 1_000));
  expect(events).toMatchObject([{ type: 'outcome', outcome: { state: 'succeeded', items: 1 } }]);
});

test('a position beyond the end of an open run does not hide items from other readers and does not set the pace', async () => {
  const { run, reader } = await streaming();
  const all = collect(reader);
  const beyond = collect((here as GatewayStore).read(PROJECT, run.runId, 'items', 1_000_000));
  const taken: number[] = [];
  worker.onReaderPosition = ({ upTo }) => taken.push(upTo);
  for (let n = 1; n <= 400; n++) await append(worker, run, n, String(n));
  await succeed(worker, run, 400);
  expect(itemsOf(await all)).toEqual(numbers(1, 400));
  expect(itemsOf(await beyond)).toEqual([]);
  await until(() => taken.length > 0);
  expect(Math.max(...taken)).toBeLessThanOrEqual(400);
  worker.onReaderPosition = () => {};
});

test('a thousand readers of one run cost one follower per gateway, and one page per position', async () => {
  const { run, reader } = await streaming();
  const first = collect(reader);
  await append(worker, run, 1, 'a', 'b');
  const before = (await store.admin.info('commandstats')).match(/cmdstat_xrange:calls=(\d+)/)?.[1] ?? '0';
  const many = Array.from({ length: 1_000 }, (_, n) =>
    collect(((n % 2 ? here : there) as GatewayStore).read(PROJECT, run.runId, 'items', 0)),
  );
  await until(async () => (await store.admin.hget(record(run.runId), 'followers')) === 'g1:i g2:i');
  const after = (await store.admin.info('commandstats')).match(/cmdstat_xrange:calls=(\d+)/)?.[1] ?? '0';
  expect(Number(after) - Number(before)).toBeLessThanOrEqual(8);
  await append(worker, run, 3, 'c');
  await succeed(worker, run, 3);
  expect(itemsOf(await first)).toEqual(['a', 'b', 'c']);
  for (const events of many) expect(itemsOf(await events)).toEqual(['a', 'b', 'c']);
});

test('a long plain stream uses flat memory, has the right count, and its fast reader gets every item', async () => {
  const { run, reader } = await streaming();
  let items = 0;
  let outcome: RunEvent | undefined;
  reader.events().subscribe((event) => {
    if (event.type === 'items') items += event.batch.count;
    else outcome = event;
  });
  const blob = 'x'.repeat(8_000);
  let warm = 0;
  const ROUNDS = 2_000;
  for (let n = 1; n <= ROUNDS; n++) {
    await append(worker, run, n, blob);
    if (n === ROUNDS / 4) warm = await store.usedMemory();
  }
  const grown = (await store.usedMemory()) - warm;
  await succeed(worker, run, ROUNDS);
  await until(() => outcome !== undefined);
  expect(items).toBe(ROUNDS);
  expect(outcome).toMatchObject({ outcome: { items: ROUNDS } });
  // 12 MB have arrived since the warm-up.
  expect(grown).toBeLessThan(2_000_000);
  const shown = await (here as GatewayStore).lookUp(PROJECT, run.runId);
  expect(shown?.items).toBe(ROUNDS);
  expect(shown?.gone).toBeGreaterThan(ROUNDS - 40);
});

test('readers from before the window or behind it get items_gone, and the fast reader gets every item', async () => {
  const { run, reader } = await streaming();
  const fast = collect(reader);
  const slow = (there as GatewayStore).read(PROJECT, run.runId, 'items', 0);
  const paused = new Promise<void>((resolve) => {
    const subscription = slow.events().subscribe(() => {
      subscription.unsubscribe();
      resolve();
    });
  });
  const blob = 'x'.repeat(8_000);
  await append(worker, run, 1, blob);
  await paused;
  for (let n = 2; n <= 400; n++) await append(worker, run, n, blob);
  const gone = { code: 'items_gone', runId: run.runId };
  await expect(collect(slow)).rejects.toMatchObject(gone);
  await expect(collect((here as GatewayStore).read(PROJECT, run.runId, 'items', 0))).rejects.toMatchObject(gone);
  const kept = (await (here as GatewayStore).lookUp(PROJECT, run.runId))?.gone as number;
  const inside = collect((there as GatewayStore).read(PROJECT, run.runId, 'items', kept));
  await succeed(worker, run, 400);
  expect(itemsOf(await inside)).toHaveLength(400 - kept);
  expect(itemsOf(await fast)).toHaveLength(400);
  await expect(collect((here as GatewayStore).read(PROJECT, run.runId, 'items', kept - 1))).rejects.toMatchObject(gone);
});

test('a plain stream has the pace of its fastest reader, on any gateway', async () => {
  const { run, reader } = await streaming();
  const taken: number[] = [];
  worker.onReaderPosition = ({ upTo }) => taken.push(upTo);
  // The calling reader does not read at all.
  const fast = collect((there as GatewayStore).read(PROJECT, run.runId, 'items', 0));
  await until(async () => (await store.admin.hget(record(run.runId), 'followers')) === 'g1:i g2:i');
  for (let n = 1; n <= 300; n++) await append(worker, run, n, String(n));
  await until(() => taken.some((upTo) => upTo >= 128));
  await succeed(worker, run, 300);
  expect(itemsOf(await fast)).toHaveLength(300);
  expect(itemsOf(await collect(reader))).toHaveLength(300);
  worker.onReaderPosition = () => {};
});
