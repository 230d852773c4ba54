// Contract 5, "List: `GET /runs`": newest first, filters, a cursor that stays in place, pages of a bounded size.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type GatewayStore, newRunId, type WorkerStore } from '../index.ts';
import { projectPrefix } from '../keys.ts';
import { call, RealStore, succeed } from './real-store.ts';

let store: RealStore;
let gateway: GatewayStore;
beforeAll(async () => {
  store = await RealStore.open();
  gateway = store.gateway('g1');
});
afterAll(() => store.close());

async function accepted(project: string, more: Parameters<typeof call>[1] = {}): Promise<string> {
  const run = call(project, more);
  await gateway.acceptor.accept(run, 'none').accepted;
  return run.runId;
}

/** Ends all queued runs. */
async function endAll(worker: WorkerStore, project: string, apps: string[]): Promise<void> {
  const { runs } = await worker.take(
    project,
    apps.map((app) => ({ app, slots: 100 })),
  );
  await Promise.all(runs.map((run) => succeed(worker, run, 0, '"a result"')));
}

test('runs are listed newest first, page by page, without their results and parameters', async () => {
  const worker = await store.worker('w1', 'pages');
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) ids.unshift(await accepted('pages'));
  await endAll(worker, 'pages', ['hello']);
  const first = await gateway.list('pages', { limit: 3 });
  expect(first.runs.map(({ runId }) => runId)).toEqual(ids.slice(0, 3));
  expect(first.runs[0]).toMatchObject({ app: 'hello', fn: 'run', state: 'succeeded', attempt: 1, items: 0 });
  expect(first.runs[0]?.outcome).toMatchObject({ state: 'succeeded', runTimeMs: '1' });
  expect(JSON.stringify(first)).not.toContain('a result');
  const second = await gateway.list('pages', { limit: 3, cursor: first.cursor as string });
  expect(second.runs.map(({ runId }) => runId)).toEqual(ids.slice(3));
  expect(second.cursor).toBeUndefined();
});

test('a cursor stays in place while runs come and go', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 6; n++) ids.unshift(await accepted('moving'));
  const first = await gateway.list('moving', { limit: 2 });
  await accepted('moving');
  await store.admin.del(`${projectPrefix('moving')}run:${ids[1]}`, `${projectPrefix('moving')}run:${ids[2]}`);
  const second = await gateway.list('moving', { limit: 10, cursor: first.cursor as string });
  expect(second.runs.map(({ runId }) => runId)).toEqual(ids.slice(3));
  expect(await store.admin.zscore(`${projectPrefix('moving')}runs`, ids[2] as string)).toBeNull();
});

test('runs of one script call keep their order across pages', async () => {
  const runs = Array.from({ length: 9 }, () => call('tick'));
  await Promise.all(runs.map((run) => gateway.acceptor.accept(run, 'none').accepted));
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await gateway.list('tick', { limit: 2, ...(cursor !== undefined && { cursor }) });
    seen.push(...page.runs.map(({ runId }) => runId));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(seen).toEqual(runs.map(({ runId }) => runId).reverse());
});

test('filters by app, function and status', async () => {
  const worker = await store.worker('w2', 'filters');
  const ended = await accepted('filters', { app: 'chat' });
  await endAll(worker, 'filters', ['chat']);
  const queued = await accepted('filters', { app: 'chat', fn: 'other' });
  await accepted('filters', { app: 'hello' });
  const ids = async (query: object) =>
    (await gateway.list('filters', { limit: 10, ...query })).runs.map((r) => r.runId);
  expect(await ids({ app: 'chat' })).toEqual([queued, ended]);
  expect(await ids({ app: 'chat', status: 'succeeded' })).toEqual([ended]);
  expect(await ids({ fn: 'other' })).toEqual([queued]);
  expect(await ids({ app: 'chat', fn: 'other', status: 'running' })).toEqual([]);
});

test('filters by the state of the webhook and by the time of acceptance', async () => {
  const worker = await store.worker('w3', 'hooks');
  const url = 'https://receiver.example.com/hook';
  const ended = await accepted('hooks', { webhook: { url }, promised: true });
  await endAll(worker, 'hooks', ['hello']);
  const plain = await accepted('hooks');
  const waiting = await accepted('hooks', { webhook: { url }, promised: true });
  const page = async (query: object) => (await gateway.list('hooks', { limit: 10, ...query })).runs;
  const ids = async (query: object) => (await page(query)).map(({ runId }) => runId);
  expect(await ids({ webhook: 'none' })).toEqual([plain]);
  expect(await ids({ webhook: 'any' })).toEqual([waiting, ended]);
  expect(await ids({ webhook: 'waiting' })).toEqual([waiting]);
  expect(await ids({ webhook: 'pending' })).toEqual([ended]);
  expect(await ids({ webhook: 'delivered' })).toEqual([]);
  // Three places in the order, a second apart.
  for (const [n, id] of [ended, plain, waiting].entries())
    await store.admin.zadd(`${projectPrefix('hooks')}runs`, (1_000_000 + n) * 1_000_000 + 500, id);
  const second = (n: number) => (1_000_000 + n) * 1_000;
  expect(await ids({ since: second(1) })).toEqual([waiting, plain]);
  expect(await ids({ until: second(1) })).toEqual([plain, ended]);
  expect(await ids({ since: second(1), until: second(1) })).toEqual([plain]);
  expect(await ids({ since: second(1) + 1, until: second(2) - 1 })).toEqual([]);
  const first = await gateway.list('hooks', { limit: 1, until: second(1) });
  expect(first.runs.map(({ runId }) => runId)).toEqual([plain]);
  const rest = await gateway.list('hooks', { limit: 10, until: second(1), cursor: first.cursor as string });
  expect(rest.runs.map(({ runId }) => runId)).toEqual([ended]);
});

test('a page reads at most 2,000 of 100,000 records, and a filter finds runs on later pages', async () => {
  const prefix = projectPrefix('many');
  const [from, portion] = [1_700_000_000_000_000, 5_000];
  const lines = `for i = 1, ${portion} do
    local id = string.format('%s-%06d', ARGV[2], ARGV[1] + i)
    redis.call('HSET', ARGV[3] .. 'run:' .. id, 'state', 'succeeded', 'call', 'hello run 1 1 - -', 'ended', 1)
    redis.call('ZADD', ARGV[3] .. 'runs', string.format('%d', ${from} + ARGV[1] + i), id)
  end`;
  for (let n = 0; n < 100_000; n += portion) await store.admin.eval(lines, 0, n, 'r', prefix);
  await store.admin.hset(`${prefix}run:r-097300`, 'state', 'failed');
  const reads = async () => Number(/cmdstat_hmget:calls=(\d+)/.exec(await store.admin.info('commandstats'))?.[1] ?? 0);
  const before = await reads();
  const first = await gateway.list('many', { limit: 100, status: 'failed' });
  expect(first.runs).toEqual([]);
  expect((await reads()) - before).toBeLessThanOrEqual(2_000);
  const second = await gateway.list('many', { limit: 100, status: 'failed', cursor: first.cursor as string });
  expect(second.runs.map(({ runId }) => runId)).toEqual(['r-097300']);
  const whole = await gateway.list('many', { limit: 500 });
  expect(whole.runs).toHaveLength(500);
});

test.each(['', 'x', 'bm90IGEgY3Vyc29y', '../../etc'])('a malformed cursor is refused: %p', async (cursor) => {
  await expect(gateway.list('pages', { limit: 1, cursor })).rejects.toMatchObject({ code: 'invalid_request' });
});

test('a project without runs has an empty list', async () => {
  expect(await gateway.list('nobody', { limit: 10 })).toEqual({ runs: [] });
  expect(await gateway.lookUp('nobody', newRunId())).toBeUndefined();
});
