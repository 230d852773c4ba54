import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { NoRedis, obtainRedis, startRedis, testRedis } from './redis.ts';

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'redis-test-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

test('a started server has the settings of the run store and answers on its socket and its port', async () => {
  const server = await startRedis({ dir: join(folder, 'plain') });
  const client = new Redis(server.socket as string);
  const asked = [
    'appendonly',
    'appendfsync',
    'save',
    'maxmemory-policy',
    'hz',
    'client-output-buffer-limit',
    'hash-max-listpack-value',
  ];
  const answers = await Promise.all(asked.map(async (name) => [name, (await client.config('GET', name)) as unknown]));
  const text = JSON.stringify(answers);
  for (const part of ['"yes"', 'everysec', 'noeviction', '"100"', 'pubsub 268435456 67108864 60', '"4096"'])
    expect(text).toContain(part);
  const tcp = new Redis(server.port, '127.0.0.1');
  expect(await tcp.ping()).toBe('PONG');
  client.disconnect();
  tcp.disconnect();
  await server.stop();
  await server.stop();
  expect(existsSync(server.socket as string)).toBe(false);
  expect(await server.exited).toContain('exit code 0');
});

test('a server keeps written data over a restart', async () => {
  const redis = await testRedis({ persist: true });
  const write = new Redis(redis.port, '127.0.0.1', { lazyConnect: true });
  await write.set('kept', 'yes');
  write.disconnect();
  await redis.restart();
  const read = new Redis(redis.port, '127.0.0.1');
  expect(await read.get('kept')).toBe('yes');
  read.disconnect();
  await redis.stop();
});

test('a path too long for a socket falls back to TCP', async () => {
  const server = await startRedis({ dir: join(folder, 'x'.repeat(100)), appendonly: false });
  expect(server.url).toBe(`redis://127.0.0.1:${server.port}`);
  await server.stop();
});

test('a taken port is reported in the server’s words', async () => {
  const first = await startRedis({ dir: join(folder, 'first'), appendonly: false });
  await expect(startRedis({ dir: join(folder, 'second'), port: first.port })).rejects.toThrow(/Address already in use/);
  await first.stop();
});

test('a server does not outlive a test process that is killed', async () => {
  const script = `const {testRedis} = await import('./stack/redis.ts'); const r = await testRedis(); console.log(r.pid); setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', script], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(owner.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  owner.kill('SIGKILL');
  // `tail --pid` returns when the process has ended.
  await run('tail', [`--pid=${pid}`, '-f', '/dev/null'], { timeout: 120_000 });
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

test('without Redis and apt-get, one line has the commands to type', async () => {
  const empty = join(folder, 'nothing');
  await expect(obtainRedis(() => {}, { path: folder, cache: empty })).rejects.toThrow(NoRedis);
  await expect(obtainRedis(() => {}, { path: folder, cache: empty })).rejects.toThrow(
    /brew install redis.*dnf.*apk.*docker/,
  );
});
