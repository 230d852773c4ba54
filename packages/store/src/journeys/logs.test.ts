// Contract 5, "Logs: `GET /runs/{run_id}/logs`", and Contract 3, "The rich stream: `?events=full`": printed lines are kept in order and bounded,
// and followers get them live.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  type GatewayStore,
  newRunId,
  type RunEvent,
  type RunReader,
  type TakenRun,
  type WorkerStore,
} from '../index.ts';
import { append, call, collect, itemsOf, RealStore, succeed, takeOne, until } from './real-store.ts';

const PROJECT = 'demo';
let store: RealStore;
let gateway: GatewayStore;
let worker: WorkerStore;
beforeAll(async () => {
  store = await RealStore.open();
  gateway = store.gateway('g1');
  worker = await store.worker('w1', PROJECT, { maxLogBytes: 2_000 });
});
afterAll(() => store.close());

async function running(live: 'none' | 'rich' | 'items' = 'none'): Promise<{ run: TakenRun; reader?: RunReader }> {
  const { accepted, reader } = gateway.acceptor.accept(call(PROJECT), live);
  await accepted;
  return { run: await takeOne(worker, PROJECT), ...(reader && { reader }) };
}
const print = ({ runId, token }: TakenRun, ...texts: string[]) =>
  worker.log(PROJECT, { runId, token, lines: texts.map((text) => ({ at: 1_000, stream: 'stdout', text })) });
const textsOf = (events: readonly RunEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'log' ? [`${event.line.seq} ${event.line.text}`] : []));

test('lines are kept in order with stream and time, and can be read from any line on', async () => {
  const { run } = await running();
  expect(await print(run, 'one', 'two\nlines')).toBe('ok');
  const { runId, token } = run;
  await worker.log(PROJECT, { runId, token, lines: [{ at: 2_000, stream: 'stderr', text: '„drei“' }] });
  expect(await gateway.logs(PROJECT, runId)).toEqual({
    lines: [
      { seq: 1, at: 1_000, stream: 'stdout', text: 'one' },
      { seq: 2, at: 1_000, stream: 'stdout', text: 'two\nlines' },
      { seq: 3, at: 2_000, stream: 'stderr', text: '„drei“' },
    ],
    cut: 0,
    ended: false,
  });
  expect((await gateway.logs(PROJECT, runId, 2))?.lines.map(({ seq }) => seq)).toEqual([3]);
  await succeed(worker, run, 0);
  expect(await print(run, 'last words')).toBe('ok');
  expect(await gateway.logs(PROJECT, runId, 3)).toMatchObject({ lines: [{ seq: 4 }], ended: true });
  expect(await gateway.logs(PROJECT, newRunId())).toBeUndefined();
});

test('a repeated part is stored once, and dropped lines are counted', async () => {
  const { run } = await running();
  const { runId, token } = run;
  const appendLine = (number: number, text: string, dropped?: number) =>
    worker.log(PROJECT, {
      runId,
      token,
      number,
      ...(dropped && { dropped }),
      lines: [{ at: 1, stream: 'stdout', text }],
    });
  for (const [number, text, dropped] of [
    [1, 'a'],
    [1, 'a'],
    [9, 'b', 7],
    [1, 'a'],
    [9, 'b', 7],
  ] as const)
    expect(await appendLine(number, text, dropped)).toBe('ok');
  expect(await gateway.logs(PROJECT, runId)).toMatchObject({
    lines: [
      { seq: 1, text: 'a' },
      { seq: 9, text: 'b' },
    ],
    cut: 7,
  });
});

test('a log is bounded: the newest lines stay, and the number of cut lines is returned', async () => {
  const { run } = await running();
  for (let n = 1; n <= 100; n++) await print(run, `line ${n} ${'x'.repeat(90)}`);
  const log = await gateway.logs(PROJECT, run.runId);
  expect(log?.lines.at(-1)?.seq).toBe(100);
  expect(log?.lines.length).toBeGreaterThan(5);
  expect(log?.cut).toBe(100 - (log?.lines.length ?? 0));
  const bytes = JSON.stringify(log?.lines).length;
  expect(bytes).toBeLessThan(3_000);
});

test('of many lines at once the newest are kept, and a single line that is too long is cut', async () => {
  const { run } = await running();
  await print(run, ...Array.from({ length: 200 }, (_, n) => `line ${n + 1}`));
  const many = await gateway.logs(PROJECT, run.runId);
  expect(many?.lines.at(-1)).toMatchObject({ seq: 200, text: 'line 200' });
  expect(many?.cut).toBe(200 - (many?.lines.length ?? 0));
  await print(run, 'x'.repeat(1_000_000));
  expect((await gateway.logs(PROJECT, run.runId, 200))?.lines[0]?.text.length).toBeLessThanOrEqual(2_000);
});

test('lines of another attempt are refused', async () => {
  const { run } = await running();
  expect(await print({ ...run, token: 'w9:1' }, 'x')).toBe('lost');
  expect(await print({ ...run, runId: newRunId() }, 'x')).toBe('lost');
});

test('a follower of everything gets the start, items and lines live, and other followers get only their mode', async () => {
  const { accepted, reader } = gateway.acceptor.accept(call(PROJECT), 'rich');
  const full = collect(reader as RunReader);
  const plain = collect(gateway.read(PROJECT, (reader as RunReader).runId, 'items', 0));
  await accepted;
  const run = await takeOne(worker, PROJECT);
  await print(run, 'a line');
  await append(worker, run, 1, 'an item');
  await print(run, 'another');
  await succeed(worker, run, 1);
  const events = await full;
  expect(events.map(({ type }) => type)).toEqual(['started', 'log', 'items', 'log', 'outcome']);
  expect(textsOf(events)).toEqual(['1 a line', '2 another']);
  expect((await plain).map(({ type }) => type)).toEqual(['items', 'outcome']);
});

test('a resumed rich stream has the missed items, and only future log lines', async () => {
  const { run } = await running();
  await print(run, 'before');
  await append(worker, run, 1, 'a', 'b');
  const resumed = gateway.read(PROJECT, run.runId, 'rich', 1);
  const seen: RunEvent[] = [];
  const done = new Promise<void>((resolve, reject) => {
    resumed.events().subscribe({ next: (event) => seen.push(event), error: reject, complete: resolve });
  });
  await until(() => seen.some(({ type }) => type === 'items'));
  await print(run, 'after');
  await until(() => textsOf(seen).length > 0);
  await succeed(worker, run, 2);
  await done;
  expect(textsOf(seen)).toEqual(['2 after']);
  expect(itemsOf(seen)).toEqual(['b']);
  expect(seen.filter(({ type }) => type === 'started')).toHaveLength(1);
});

test('a follower of the log on any gateway gets every kept line after its position once, then live lines, then the outcome', async () => {
  const { run } = await running('items');
  await print(run, 'one', 'two');
  const elsewhere = store.gateway('g2');
  const seen: RunEvent[] = [];
  const reader = elsewhere.read(PROJECT, run.runId, 'logs', 1);
  const done = new Promise<void>((resolve, reject) => {
    reader.events().subscribe({ next: (event) => seen.push(event), error: reject, complete: resolve });
  });
  await until(() => textsOf(seen).length === 1);
  await Promise.all([print(run, 'three'), print(run, 'four')]);
  await append(worker, run, 1, 'an item');
  await succeed(worker, run, 1);
  await done;
  expect(textsOf(seen)).toEqual(['2 two', '3 three', '4 four']);
  expect(seen.at(-1)?.type).toBe('outcome');
  expect(itemsOf(seen)).toEqual([]);
  const late = await collect(gateway.read(PROJECT, run.runId, 'logs', 0));
  expect(textsOf(late)).toEqual(['1 one', '2 two', '3 three', '4 four']);
});

test('a paused follower of the log gets the lines of the pause when it continues', async () => {
  const { run } = await running();
  const reader = gateway.read(PROJECT, run.runId, 'logs', 0);
  await print(run, 'one');
  const first = new Promise<void>((resolve) => {
    const subscription = reader.events().subscribe(() => {
      subscription.unsubscribe();
      resolve();
    });
  });
  await first;
  await print(run, 'two');
  await print(run, 'three');
  await succeed(worker, run, 0);
  expect(textsOf(await collect(reader))).toEqual(['2 two', '3 three']);
});
