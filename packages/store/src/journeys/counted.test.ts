// Contract 9: a project's counted bytes differ from the memory of its keys in Redis by at most a tenth.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DeliveryStore, type GatewayStore, type NewRun, newRunId, type WorkerStore } from '../index.ts';
import { projectPrefix } from '../keys.ts';
import { append, call, RealStore, succeed, takeOne } from './real-store.ts';

/** Runs side by side. The memory of ended runs does not depend on this number. */
const TOGETHER = 10;
/** Runs before the measured runs: the memory of a project's first keys is no part of a run. */
const FIRST = 40;

let store: RealStore;
let gateway: GatewayStore;
let worker: WorkerStore;
/** Each test has a project of its own. */
let project: string;
let tests = 0;
beforeAll(async () => {
  store = await RealStore.open();
  gateway = store.gateway('g1');
  worker = await store.worker('w1', 'first');
});
afterAll(() => store.close());

const counted = async (): Promise<number> => Number(await store.admin.get(`${projectPrefix(project)}bytes`));

type Work = (deliveries: DeliveryStore) => Promise<void>;

const accepted = async (more: Partial<NewRun> = {}): Promise<void> => {
  expect(await gateway.acceptor.accept(call(project, more), 'none').accepted).toEqual({ state: 'accepted' });
};

const returns =
  (bytes: number, more: () => Partial<NewRun> = () => ({})): Work =>
  async () => {
    await accepted(more());
    await succeed(worker, await takeOne(worker, project), 0, `"${'x'.repeat(bytes)}"`);
  };

const yields =
  (count: number, bytes: number): Work =>
  async () => {
    await accepted({ promised: true });
    const taken = await takeOne(worker, project);
    for (let n = 1; n <= count; n++) await append(worker, taken, n, 'x'.repeat(bytes));
    await succeed(worker, taken, count);
  };

const prints =
  (parts: number, bytes: number): Work =>
  async () => {
    await accepted();
    const taken = await takeOne(worker, project);
    const line = { at: 1, stream: 'stdout', text: 'x'.repeat(bytes) } as const;
    for (let n = 0; n < parts; n++) await worker.log(project, { ...taken, lines: [line] });
    await succeed(worker, taken, 0, '"ok"');
  };

/** A run with a webhook and a sealed secret. @param attempts number of attempts; all except the last fail */
const delivers =
  (attempts: number, answer: string, items: number, result?: string): Work =>
  async (deliveries) => {
    await accepted({ promised: true, webhook: { url: 'https://receiver.example.com/hook', secret: 's'.repeat(120) } });
    const taken = await takeOne(worker, project);
    for (let n = 1; n <= items; n++) await append(worker, taken, n, 'x'.repeat(200));
    await succeed(worker, taken, items, result);
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const begun = await deliveries.begin({ project, runId: taken.runId, attempt }, 20_000);
      if (begun.state !== 'begun') throw new Error(begun.state);
      await deliveries.body(begun.task);
      const last = attempt === attempts;
      const next = last ? ({ state: 'delivered' } as const) : ({ state: 'pending', delayMs: 0, refusals: 0 } as const);
      const record = { at: Date.now(), durationMs: 12.5, address: '203.0.113.7', status: last ? 200 : 500, answer };
      await deliveries.record(begun.task, record, next);
    }
  };

test.each<[string, number, Work]>([
  ['small calls', 200, returns(2)],
  ['calls that wait', 200, () => accepted()],
  [
    'calls with keys',
    200,
    returns(2, () => ({ promised: true, idempotency: { key: newRunId(), fingerprint: 'f'.repeat(40) } })),
  ],
  ['parameters of 20 kB', 100, returns(2, () => ({ params: Buffer.from(`{"text":"${'x'.repeat(20_000)}"}`) }))],
  ...[30, 130, 250, 1_000, 4_080, 60_000].flatMap((size): [string, number, Work][] =>
    [2, 300, 5_000].map((result) => [
      `parameters of ${size} bytes and a result of ${result} bytes`,
      160,
      returns(result, () => ({ params: Buffer.from(`{"text":"${'x'.repeat(size - 11)}"}`) })),
    ]),
  ),
  ['parameters of 70 kB', 160, returns(2, () => ({ params: Buffer.from(`{"text":"${'x'.repeat(70_000)}"}`) }))],
  ['parameters of 3 kB that wait', 100, () => accepted({ params: Buffer.from(`{"text":"${'x'.repeat(3_000)}"}`) })],
  ['parameters of 20 kB that wait', 100, () => accepted({ params: Buffer.from(`{"text":"${'x'.repeat(20_000)}"}`) })],
  ['results of 300 bytes', 200, returns(300)],
  ['results of 1 kB', 200, returns(1_000)],
  ['results of 3 kB', 100, returns(3_000)],
  ['results of 5 kB', 100, returns(5_000)],
  ['results of 20 kB', 100, returns(20_000)],
  ['results of 130 kB', 50, returns(130_000)],
  ['results of 3 MB', 5, returns(3_000_000)],
  ['one item', 100, yields(1, 100)],
  ['ten small items', 50, yields(10, 20)],
  ['200 small items', 20, yields(200, 40)],
  ['50 items of 300 bytes', 20, yields(50, 300)],
  ['20 items of 1 kB', 20, yields(20, 1_000)],
  ['20 items of 1.5 kB', 20, yields(20, 1_500)],
  ['20 items of 2 kB', 20, yields(20, 2_000)],
  ['20 items of 3 kB', 20, yields(20, 3_000)],
  ['ten items of 130 kB', 10, yields(10, 130_000)],
  ['20 items of 10 kB', 10, yields(20, 10_000)],
  ['one printed line', 100, prints(1, 100)],
  ['thirty printed parts', 20, prints(30, 2_000)],
  ['a webhook that is delivered', 100, delivers(1, '', 0, '"ok"')],
  ['a webhook that is delivered and answers with 4 kB', 100, delivers(1, 'x'.repeat(4_096), 0, '"ok"')],
  ['a webhook that takes ten attempts', 20, delivers(10, 'x'.repeat(500), 0, '"ok"')],
  ['a webhook with a result of 10 kB', 50, delivers(1, 'ok', 0, `"${'x'.repeat(10_000)}"`)],
  ['a webhook with the items of a stream', 50, delivers(1, 'ok', 30)],
])('counted bytes match the memory in Redis: %s', async (_, count, work) => {
  project = `p${++tests}`;
  await worker.serve(project);
  const deliveries = new DeliveryStore(store.admin, worker.timings);
  const repeat = async (times: number): Promise<void> => {
    for (let left = times; left > 0; left -= TOGETHER)
      await Promise.all(Array.from({ length: Math.min(left, TOGETHER) }, () => work(deliveries)));
  };
  await repeat(Math.min(count, FIRST));
  const before = { used: await store.keysMemory(projectPrefix(project)), counted: await counted() };
  await repeat(count);
  const share = ((await counted()) - before.counted) / ((await store.keysMemory(projectPrefix(project))) - before.used);
  expect(share).toBeGreaterThan(0.9);
  expect(share).toBeLessThan(1.1);
  // The next project begins with an empty store.
  await store.admin.flushall();
});
