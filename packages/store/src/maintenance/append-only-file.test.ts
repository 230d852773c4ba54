import { readdir, readFile, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { defaultTimings } from '../timings.ts';
import { AppendOnlyFile } from './append-only-file.ts';
import { ProjectIndex } from './project-index.ts';

const LOOKS_EVERY_MS = 20;

let server: TestRedis;
let redis: Redis;
const warnings: string[] = [];
const logger = { warn: (_fields: object, text: string) => warnings.push(text), error: () => {} };
const gateway = (): AppendOnlyFile =>
  new AppendOnlyFile({ redis, logger, timings: defaultTimings, projects: new ProjectIndex(redis, 0) });

/** Returns the number of rewrites since Redis started, and whether a rewrite is under way. */
async function rewrites(): Promise<{ begun: number; underWay: boolean }> {
  const info = await redis.info('persistence');
  return { begun: Number(/^aof_rewrites:(\d+)/m.exec(info)?.[1]), underWay: /^aof_rewrite_in_progress:1/m.test(info) };
}

/** Lets the gateways look until a rewrite has ended. */
async function looked(...gateways: readonly AppendOnlyFile[]): Promise<void> {
  for (let now = await rewrites(); now.begun === 0 || now.underWay; now = await rewrites()) {
    for (const one of gateways) await one.run();
    await new Promise((resolve) => setTimeout(resolve, LOOKS_EVERY_MS));
  }
}

const folder = async (): Promise<string> =>
  join(((await redis.config('GET', 'dir')) as string[])[1] as string, 'appendonlydir');

/** Returns the path of the file that Redis appends to. */
async function file(): Promise<string> {
  const names = (await readdir(await folder())).filter((name) => name.endsWith('.incr.aof'));
  return join(await folder(), names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1) as string);
}

beforeAll(async () => {
  server = await testRedis({ persist: true, tcp: true });
  redis = new Redis(server.port, '127.0.0.1', { maxRetriesPerRequest: null });
  redis.on('error', () => {});
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

test('after a start of Redis the file is rewritten exactly once, for any number of gateways', async () => {
  const gateways = [gateway(), gateway(), gateway()];
  await looked(...gateways);
  for (let n = 0; n < 3; n++) for (const one of [...gateways, gateway()]) await one.run();
  expect(await rewrites()).toEqual({ begun: 1, underWay: false });
});

test('half of a transaction at the end of the file, left by a crash of the machine, is never executed at any later start', async () => {
  await redis.set('before', '1');
  const path = await file();
  const whole = (await stat(path)).size;
  await redis.multi().set('half', '1').set('other half', '1').exec();
  server.pause();
  // The cut goes through the last command before EXEC.
  await truncate(path, (await stat(path)).size - '*1\r\n$4\r\nEXEC\r\n'.length - 5);
  await server.restart({ kill: true });
  expect(await redis.mget('before', 'half', 'other half')).toEqual(['1', null, null]);
  // Redis has cut off only the last command.
  expect((await readFile(path, 'utf8')).slice(whole)).toContain('half');
  await looked(gateway());
  expect(await readFile(await file(), 'utf8')).not.toContain('half');
  await server.restart({ kill: true });
  expect(await redis.mget('before', 'half', 'other half')).toEqual(['1', null, null]);
});

test('if Redis does not allow the rewrite, one warning is logged', async () => {
  await redis.call('ACL', 'SETUSER', 'default', '-bgrewriteaof');
  await redis.set('ip:rewritten', 'from another start');
  const one = gateway();
  for (let n = 0; n < 3; n++) await one.run();
  expect(warnings).toEqual([expect.stringMatching(/BGREWRITEAOF/)]);
  await redis.call('ACL', 'SETUSER', 'default', '+bgrewriteaof');
});
