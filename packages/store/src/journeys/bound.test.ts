// Contract 5, "Retention and limits": the run store is bounded. The oldest unpromised runs are removed first, and promised runs never.
// One project cannot fill the store for other projects.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type GatewayStore, type NewRun, newRunId, type WorkerStore } from '../index.ts';
import { projectPrefix } from '../keys.ts';
import { ProjectIndex } from '../maintenance/project-index.ts';
import { Shares } from '../maintenance/shares.ts';
import { Sweeper } from '../maintenance/sweeper.ts';
import { defaultTimings } from '../timings.ts';
import { APP, append, call, collect, itemsOf, RealStore, succeed, takeOne, until } from './real-store.ts';

const MIB = 1024 * 1024;
/** Bytes that a small run counts after its end, with its parameters (parts/memory.lua). */
const RUN = 562;
const timings = { reapMs: 20, attendMs: 50 };
let store: RealStore;
beforeEach(async () => {
  store = await RealStore.open();
});
afterEach(() => store.close());

const bytesOf = async (project: string): Promise<number> =>
  Number(await store.admin.get(`${projectPrefix(project)}bytes`));

/** Repeats a write until a gateway has made room for it, as a worker does. */
async function repeated<Answer>(write: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if ((error as { code?: string }).code !== 'overloaded') throw error;
    }
  }
}

/** Accepts `count` runs and ends them successfully. @returns ids of the accepted runs */
async function run(
  gateway: GatewayStore,
  worker: WorkerStore,
  project: string,
  count: number,
  more: Partial<NewRun> = {},
  result = '"ok"',
): Promise<string[]> {
  const calls = Array.from({ length: count }, () => call(project, more));
  const answers = await Promise.all(calls.map((one) => gateway.acceptor.accept(one, 'none').accepted));
  const ids = calls.filter((_, at) => answers[at]?.state === 'accepted').map(({ runId }) => runId);
  for (let left = ids.length; left > 0; ) {
    const { runs } = await worker.take(project, [{ app: APP, slots: left }]);
    await Promise.all(runs.map((taken) => repeated(() => succeed(worker, taken, 0, result))));
    left -= runs.length;
  }
  return ids;
}

test.each<[string, Partial<NewRun>, string]>([
  ['small calls', {}, '"ok"'],
  ['promised calls with keys', { promised: true, idempotency: { key: 'k', fingerprint: 'f' } }, '"ok"'],
  ['large parameters', { params: Buffer.from(`{"text":"${'x'.repeat(20_000)}"}`) }, '"ok"'],
  ['large results', {}, `"${'x'.repeat(20_000)}"`],
  ['results that just fit a record', {}, `"${'x'.repeat(3_000)}"`],
])('counted bytes are close to the memory in Redis: %s', async (_, more, result) => {
  const gateway = store.gateway('g1');
  const worker = await store.worker('w1', 'demo');
  const some = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const key = newRunId();
      await run(
        gateway,
        worker,
        'demo',
        1,
        { ...more, ...(more.idempotency && { idempotency: { key, fingerprint: 'f' } }) },
        result,
      );
    }
  };
  await some(40);
  const [used, counted] = [await store.keysMemory(), await bytesOf('demo')];
  await some(160);
  const share = ((await bytesOf('demo')) - counted) / ((await store.keysMemory()) - used);
  expect(share).toBeGreaterThan(0.75);
  expect(share).toBeLessThan(1.35);
});

test('ten turnovers by retention keep memory flat and leave no keys of forgotten runs', async () => {
  const gateway = store.gateway('g1', { timings });
  gateway.start();
  const worker = await store.worker('w1', 'demo');
  const prefix = projectPrefix('demo');
  const turnover = async (): Promise<void> => {
    await run(gateway, worker, 'demo', 150, { keepMs: 1 });
    await run(gateway, worker, 'demo', 50, { keepMs: 1, promised: true }, `"${'x'.repeat(2_000)}"`);
    for (let n = 0; n < 10; n++) {
      const keyed = { idempotency: { key: newRunId(), fingerprint: 'f' }, keepMs: 1 };
      await gateway.acceptor.accept(call('demo', keyed), 'none').accepted;
      const taken = await takeOne(worker, 'demo');
      await append(worker, taken, 1, 'a', 'b');
      await worker.log('demo', { ...taken, lines: [{ at: 1, stream: 'stdout', text: 'printed' }] });
      await succeed(worker, taken, 2);
    }
    await until(async () => (await bytesOf('demo')) === 0);
  };
  for (let n = 0; n < 3; n++) await turnover();
  const warm = await store.usedMemory();
  for (let n = 0; n < 10; n++) await turnover();
  expect((await store.usedMemory()) - warm).toBeLessThan(150_000);
  const left = (await store.admin.keys(`${prefix}*`)).map((key) => key.slice(prefix.length));
  expect(left.filter((name) => /^(run|items|log|idempotency|attempts):|^(runs|kept|promises)$/.test(name))).toEqual([]);
});

test('a run is forgotten in the first round after its retention, even if no run was forgotten before', async () => {
  const gateway = store.gateway('g1');
  const worker = await store.worker('w1', 'demo');
  const logger = { warn: () => {}, error: () => {} };
  const projects = new ProjectIndex(store.admin, defaultTimings.commandMs);
  const sweeper = new Sweeper({ redis: store.admin, logger, timings: defaultTimings, projects }, new Shares(), MIB);
  for (let n = 0; n < 5; n++) {
    const [id] = await run(gateway, worker, 'demo', 1, { keepMs: 0, promised: n % 2 === 0 });
    await sweeper.run();
    expect(await gateway.lookUp('demo', id as string)).toBeUndefined();
    await sweeper.run();
  }
});

test('ten turnovers by the bound: the oldest runs are removed, no call is refused, memory is flat', async () => {
  const bound = MIB / 2;
  const gateway = store.gateway('g1', { timings, storeMaxBytes: bound });
  gateway.start();
  const worker = await store.worker('w1', 'demo');
  await until(async () => (await gateway.depths()).store.boundBytes === bound);
  let warm = 0;
  let accepted = 0;
  const ROUNDS = 86;
  for (let n = 0; n < ROUNDS; n++) {
    accepted += (await run(gateway, worker, 'demo', 125)).length;
    expect(await bytesOf('demo')).toBeLessThanOrEqual(bound);
    if (n === 15) warm = await store.usedMemory();
  }
  expect(accepted).toBe(ROUNDS * 125);
  expect(accepted * RUN).toBeGreaterThan(10 * bound);
  expect((await store.usedMemory()) - warm).toBeLessThan(bound * 0.4);
  const { runs } = await gateway.list('demo', { limit: 200 });
  expect(runs).toHaveLength(200);
});

test('promised runs replace unpromised runs, and new calls are refused if only promised runs are left', async () => {
  const bound = MIB / 2;
  const gateway = store.gateway('g1', { timings, storeMaxBytes: bound });
  gateway.start();
  const worker = await store.worker('w1', 'demo');
  await until(async () => (await gateway.depths()).store.boundBytes === bound);
  const plain = await run(gateway, worker, 'demo', 200);
  const promised: string[] = [];
  for (let n = 0; n < 16; n++) promised.push(...(await run(gateway, worker, 'demo', 100, { promised: true })));
  expect(promised.length).toBeLessThan(1_000);
  expect(promised.length * RUN).toBeGreaterThan(bound * 0.8);
  for (const id of promised) expect((await gateway.lookUp('demo', id))?.state).toBe('succeeded');
  for (const id of plain) expect(await gateway.lookUp('demo', id)).toBeUndefined();
  for (const more of [{}, { promised: true, idempotency: { key: 'k', fingerprint: 'f' } }]) {
    const refused = call('demo', more);
    expect(await gateway.acceptor.accept(refused, 'none').accepted).toEqual({
      state: 'overloaded',
      reason: 'store',
      retryAfterMs: expect.any(Number),
    });
    expect(await gateway.lookUp('demo', refused.runId)).toBeUndefined();
  }
  expect(await store.admin.exists(`${projectPrefix('demo')}idempotency:k`)).toBe(0);
});

test('one of several projects may hold half of the store, and calls of other projects are accepted', async () => {
  const bound = MIB;
  const gateway = store.gateway('g1', { timings, storeMaxBytes: bound });
  gateway.start();
  const [greedy, modest] = [await store.worker('w1', 'greedy'), await store.worker('w2', 'modest')];
  const first = await run(gateway, modest, 'modest', 20, { promised: true });
  await until(async () => (await gateway.depths()).projects.length === 1 && (await gateway.depths()).store.bytes > 0);
  const held: string[] = [];
  for (let n = 0; n < 25; n++) held.push(...(await run(gateway, greedy, 'greedy', 100, { promised: true })));
  expect(held.length * RUN).toBeGreaterThan(bound * 0.45);
  expect(await bytesOf('greedy')).toBeLessThanOrEqual(bound / 2);
  expect(await gateway.acceptor.accept(call('greedy'), 'none').accepted).toMatchObject({
    state: 'overloaded',
    reason: 'store',
  });
  expect(await run(gateway, modest, 'modest', 200, { promised: true })).toHaveLength(200);
  expect((await gateway.lookUp('modest', first[0] as string))?.state).toBe('succeeded');
});

test('the oldest runs of any project are removed first', async () => {
  const bound = MIB;
  const gateway = store.gateway('g1', { timings, storeMaxBytes: bound });
  const [one, two] = [await store.worker('w1', 'one'), await store.worker('w2', 'two')];
  const oldest = await run(gateway, one, 'one', 800, { keepMs: 50_000 });
  const newer = await run(gateway, two, 'two', 800);
  expect(await gateway.lookUp('one', oldest[0] as string)).toBeDefined();
  await run(gateway, one, 'one', 100);
  gateway.start();
  await until(async () => {
    const { bytes } = (await gateway.depths()).store;
    return bytes > 0 && bytes < bound * 0.8;
  });
  expect(await gateway.lookUp('one', oldest[0] as string)).toBeUndefined();
  expect(await gateway.lookUp('two', newer[0] as string)).toBeDefined();
});

test('a run with a live reader stays, even if room is wanted or its retention ends', async () => {
  const bound = MIB / 2;
  const gateway = store.gateway('g1', { timings, storeMaxBytes: bound });
  gateway.start();
  const worker = await store.worker('w1', 'demo');
  const { accepted, reader } = gateway.acceptor.accept(call('demo', { keepMs: 1 }), 'items');
  await accepted;
  const read = await takeOne(worker, 'demo');
  let resume = (): void => {};
  const rest = new Promise<string[]>((resolve, reject) => {
    const subscription = reader?.events().subscribe(() => {
      subscription?.unsubscribe();
      resume = () => void collect(reader).then((events) => resolve(itemsOf(events)), reject);
    });
  });
  for (let n = 1; n <= 3; n++) await append(worker, read, n, `item ${n}`);
  await succeed(worker, read, 3);
  for (let n = 0; n < 8; n++) await run(gateway, worker, 'demo', 250);
  expect(await gateway.lookUp('demo', read.runId)).toBeDefined();
  resume();
  expect(await rest).toEqual(['item 2', 'item 3']);
});

/** Accepts, executes and reads runs with items of 20 kB, one run after the other. @returns ids of the runs */
async function readToTheEnd(gateway: GatewayStore, count: number): Promise<string[]> {
  const worker = await store.worker('w1', 'demo');
  await until(async () => Number.isFinite((await gateway.depths()).store.boundBytes));
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const { accepted, reader } = gateway.acceptor.accept(call('demo'), n % 2 === 0 ? 'items' : 'outcome');
    expect(await accepted).toEqual({ state: 'accepted' });
    const read = reader as NonNullable<typeof reader>;
    const ended = n % 2 === 0 ? collect(read) : read.outcome();
    const taken = await takeOne(worker, 'demo');
    await repeated(() => append(worker, taken, 1, 'x'.repeat(20_000)));
    await succeed(worker, taken, 1);
    await ended;
    read.close();
    ids.push(taken.runId);
  }
  return ids;
}

test('streams and answers make room as soon as they were read to the end', async () => {
  // The runs between two rounds of the sweeper take less than 40 % of this bound, as shares.ts presumes.
  const gateway = store.gateway('g1', { timings, storeMaxBytes: 2 * MIB });
  gateway.start();
  await readToTheEnd(gateway, 240);
});

test('runs that were read while the store had room make room later, before the next round of attends', async () => {
  const gateway = store.gateway('g1', { timings: { ...timings, attendMs: 600_000 }, storeMaxBytes: 2 * MIB });
  gateway.start();
  const [oldest] = await readToTheEnd(gateway, 240);
  expect(await gateway.lookUp('demo', oldest as string)).toBeUndefined();
});

test('the bound is 60 % of maxmemory, or 1 GiB without a maxmemory', async () => {
  const gateway = store.gateway('g1', { timings });
  gateway.start();
  await until(async () => (await gateway.depths()).store.boundBytes === 1024 * MIB);
  await store.admin.config('SET', 'maxmemory', String(100 * MIB));
  await until(async () => (await gateway.depths()).store.boundBytes === 60 * MIB);
});

test('a full Redis refuses calls and accepts nothing, and existing runs end and are read', async () => {
  const gateway = store.gateway('g1');
  const worker = await store.worker('w1', 'demo');
  const { accepted, reader } = gateway.acceptor.accept(call('demo'), 'items');
  const events = collect(reader as NonNullable<typeof reader>);
  await accepted;
  await gateway.acceptor.accept(call('demo'), 'none').accepted;
  const first = await takeOne(worker, 'demo');
  await append(worker, first, 1, 'a');
  await store.admin.config('SET', 'maxmemory', '1');
  const refused = call('demo', { promised: true });
  await expect(gateway.acceptor.accept(refused, 'none').accepted).rejects.toMatchObject({ code: 'overloaded' });
  await expect(append(worker, first, 2, 'b')).rejects.toMatchObject({ code: 'overloaded' });
  expect(await succeed(worker, first, 1)).toEqual({ state: 'ended' });
  expect(itemsOf(await events)).toEqual(['a']);
  const second = await takeOne(worker, 'demo');
  expect(await gateway.cancel('demo', second.runId)).toBe('running');
  expect(await gateway.lookUp('demo', refused.runId)).toBeUndefined();
});

test('near maxmemory the oldest runs are removed too, for any bound', async () => {
  const gateway = store.gateway('g1', { timings, storeMaxBytes: 1024 * MIB });
  const worker = await store.worker('w1', 'demo');
  const [oldest] = await run(gateway, worker, 'demo', 1_000);
  await store.admin.config('SET', 'maxmemory', String(Math.floor((await store.usedMemory('with connections')) / 0.95)));
  gateway.start();
  await until(async () => (await gateway.lookUp('demo', oldest as string)) === undefined);
});
