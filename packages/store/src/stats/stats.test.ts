// Contract 5, "Statistics": the counters of a window are added up by steps, and latencies are estimated from their ranges.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { GatewayStore } from '../index.ts';
import { call, RealStore, succeed, takeOne } from '../journeys/real-store.ts';
import { projectPrefix } from '../keys.ts';
import { Latencies } from './latencies.ts';

const MINUTE = 60_000;
let store: RealStore;
let gateway: GatewayStore;
beforeAll(async () => {
  store = await RealStore.open();
  gateway = store.gateway('g1');
});
afterAll(() => store.close());

/** Writes counters of an app, some minutes ago. */
async function counted(
  project: string,
  app: string,
  minutesAgo: number,
  fields: Record<string, number>,
): Promise<void> {
  const [seconds] = await store.admin.time();
  const now = Number(seconds) * 1000 - minutesAgo * MINUTE;
  await store.admin.hset(`${projectPrefix(project)}stats:${now - (now % MINUTE)}:${app}`, fields);
  await store.admin.zadd(`${projectPrefix(project)}counted-apps`, now, app);
}

const query = { windowMs: 60 * MINUTE, stepMs: MINUTE, limit: 10 };

test('runs that end now are in the last step', async () => {
  const worker = await store.worker('w1', 'now');
  await gateway.acceptor.accept(call('now'), 'none').accepted;
  await succeed(worker, await takeOne(worker, 'now'), 0, '1');
  const { since, until, apps } = await gateway.stats('now', query);
  expect(until - since).toBe(60 * MINUTE);
  expect(apps.map(({ app }) => app)).toEqual(['hello']);
  const steps = [...(apps[0]?.steps.values() ?? [])];
  expect(steps.map(({ calls, errors }) => [calls, errors])).toEqual([[1, 0]]);
});

test('a step adds up its minutes, and another project has its own numbers', async () => {
  await counted('sums', 'chat', 700, { 20: 4, e24: 1 });
  await counted('sums', 'chat', 701, { 20: 6 });
  const day = { windowMs: 1440 * MINUTE, stepMs: 15 * MINUTE, limit: 10 };
  const { apps } = await gateway.stats('sums', day);
  const all = new Latencies();
  for (const step of apps[0]?.steps.values() ?? []) all.addAll(step);
  expect([all.calls, all.errors]).toEqual([11, 1]);
  expect((await gateway.stats('sums', query)).apps).toEqual([]);
  expect((await gateway.stats('others', day)).apps).toEqual([]);
});

test('apps are read in pages with a bounded number of minutes', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `app-${String(n).padStart(2, '0')}`);
  for (const app of names) await counted('many', app, 0, { 1: 1 });
  const day = { windowMs: 1440 * MINUTE, stepMs: 15 * MINUTE, limit: 10 };
  const seen: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await gateway.stats('many', { ...day, ...(cursor !== undefined && { cursor }) });
    expect(page.apps.length).toBeLessThanOrEqual(5);
    seen.push(...page.apps.map(({ app }) => app));
    cursor = page.cursor;
    pages += 1;
  } while (cursor !== undefined);
  expect([seen, pages]).toEqual([names, 3]);
  expect((await gateway.stats('many', { ...day, app: 'app-07' })).apps.map(({ app }) => app)).toEqual(['app-07']);
});

describe('estimates of latencies', () => {
  /** The range of a latency, as the script computes it. */
  const rangeOf = (ms: number): string => String(ms < 1 ? 0 : 1 + Math.floor(4 * Math.log2(ms) + 1e-9));

  test('a quantile is within 10 % of the exact value', () => {
    const exact = Array.from({ length: 1000 }, (_, n) => Math.round(1.5 ** (n / 40)) + 1);
    const latencies = new Latencies();
    for (const ms of exact) latencies.add(rangeOf(ms), 1);
    for (const share of [0.01, 0.5, 0.9, 0.99, 1]) {
      const wanted = exact[Math.ceil(share * exact.length) - 1] as number;
      const ratio = (latencies.quantile(share) as number) / wanted;
      expect(ratio).toBeGreaterThan(0.9);
      expect(ratio).toBeLessThan(1.1);
    }
  });

  test('without runs there is no quantile', () => {
    expect(new Latencies().quantile(0.5)).toBeUndefined();
  });
});
