// The watch of the fault suite: it reports a Redis that stands still by itself, and does not excuse slow commands.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { redisAddress } from '@inference-proxy/platform';
import { type RunningRedis, startRedis } from '@inference-proxy/supervisor';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../client/until.ts';
import type { Trouble } from './history.ts';
import { StoreWatch } from './store-watch.ts';

const STALL_MS = 1500;

let dir: string;
let store: RunningRedis;
let watch: StoreWatch;
let other: Redis;
let stalls: Trouble[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'store-watch-'));
  store = await startRedis({ dir, args: ['--enable-debug-command', 'yes'] });
  stalls = [];
  watch = new StoreWatch(store.url, (stall) => stalls.push(stall));
  watch.start();
  other = new Redis(redisAddress(store.url));
  other.on('error', () => {});
});
afterEach(async () => {
  await watch.stop();
  other.disconnect();
  await store.stop();
  await rm(dir, { recursive: true, force: true });
});

/** Stops the process of Redis for a time. */
async function stall(): Promise<void> {
  process.kill(store.pid, 'SIGSTOP');
  await sleep(STALL_MS);
  process.kill(store.pid, 'SIGCONT');
}

test('a Redis that stands still is a trouble', async () => {
  await stall();
  const to = performance.now();
  await until(() => stalls.length === 1);
  expect(stalls[0]?.from).toBeLessThan(to);
  expect(stalls[0]?.to).toBeGreaterThan(to);
});

test('a slow command is no trouble', async () => {
  await other.call('DEBUG', 'SLEEP', STALL_MS / 1000);
  const after = performance.now();
  await until(async () => (await other.slowlog('LEN')) === 0); // the watch has read and cleared the slow log
  await stall();
  await until(() => stalls.length > 0);
  expect(stalls).toHaveLength(1);
  expect(stalls[0]?.to).toBeGreaterThan(after + STALL_MS);
});
