// A full disk's traces in Redis' append-only file, and their repair (docs/decisions/0019-the-file-is-rewritten.md).
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { redisAddress } from '@inference-proxy/platform';
import { freePort, obtainRedis, type RunningRedis, startRedis } from '@inference-proxy/supervisor';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { appendOnlyFileIn, type Disk, openDisk } from './disk.ts';
import { SHORT_TIMES } from './place.ts';
import { rewritten } from './rewritten.ts';

/** More bytes than the rest of a block holds. */
const LARGE = 'x'.repeat(10_000);

const clientOf = (url: string): Redis => {
  const client = new Redis({ ...redisAddress(url), maxRetriesPerRequest: null });
  client.on('error', () => {});
  return client;
};

const refuses = async (redis: Redis): Promise<boolean> =>
  /^aof_last_write_status:err/m.test(await redis.info('persistence'));

let disk: Disk;
beforeAll(async () => {
  disk = await openDisk();
});
afterAll(() => disk?.close());

describe('Redis alone', () => {
  let server: RunningRedis;
  let redis: Redis;
  afterEach(async () => {
    redis.disconnect();
    await server.kill();
  });

  test('after a rewrite, a full disk leaves a hole in the file: Redis cannot read the file, and one line names the remedy', async () => {
    const binary = await disk.wrap(await obtainRedis(() => {}));
    const dir = join(disk.dir, 'alone');
    await mkdir(dir);
    server = await startRedis({ dir, binary, graceS: 0 });
    redis = clientOf(server.url);
    await redis.bgrewriteaof();
    await until(async () => /^aof_rewrite_in_progress:0/m.test(await redis.info('persistence')));
    await redis.set('before', '1');
    const free = await disk.fill(server.pid, dir);
    await redis.set('full', LARGE);
    await until(() => refuses(redis));
    await free();
    await until(() => redis.set('after', '1').catch(() => false));
    await server.kill();
    expect(await readFile(await appendOnlyFileIn(dir), 'latin1')).toMatch(/\r\n\0+\*/);
    const line = `Redis cannot read its file in ${join(dir, 'appendonlydir')}`;
    await expect(startRedis({ dir, binary, graceS: 0 })).rejects.toThrow(line);
    await expect(startRedis({ dir, binary, graceS: 0 })).rejects.toThrow(/redis-check-aof --fix .*\.manifest/);
  });
});

describe('with the service', () => {
  let stack: TestStack;
  let redis: Redis;
  afterEach(async () => {
    redis?.disconnect();
    await stack?.stop();
  });

  test('the file is rewritten when the disk has room, and a killed Redis keeps the runs from before and after', async () => {
    const port = await freePort();
    const dir = join(disk.dir, 'served');
    await mkdir(dir);
    stack = await startTestStack({
      redis: { port, binary: await disk.wrap(await obtainRedis(() => {})) },
      redisDir: dir,
      env: { ...SHORT_TIMES, WORKER_APPS: 'demo/steady' },
    });
    redis = clientOf(stack.redisUrl);
    const caller = new Caller(stack.port, stack.jwtSecret);
    await caller.ready('steady');
    const accepted = async (): Promise<string> => {
      const { text } = await caller.call('steady/value', { value: 1 }, { query: '?async=true' });
      const { run_id } = JSON.parse(text) as { run_id?: string };
      if (run_id === undefined) throw new Error(text);
      await caller.ended(run_id);
      return run_id;
    };
    await rewritten(redis);
    const before = await accepted();
    const free = await disk.fill(stack.pid('redis'), dir);
    await redis.set('full', LARGE);
    await until(() => refuses(redis));
    await until(async () => (await caller.call('steady/value', { value: 1 })).status === 503);
    await free();
    const after = await until(() => accepted().catch(() => undefined));
    await rewritten(redis);
    expect(await readFile(await appendOnlyFileIn(dir), 'latin1')).not.toContain('\0\0');
    await stack.kill('redis');
    for (const runId of [before, after])
      expect(await until(() => caller.lookUp(runId).catch(() => undefined))).toMatchObject({ status: 'succeeded' });
  });
});
