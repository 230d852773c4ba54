// The Redis of the stack: settings, addresses and messages.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { NoRedis, obtainRedis } from './binary.ts';
import { startRedis } from './server.ts';

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

test('without Redis and apt-get, one line has the commands to type', async () => {
  const empty = join(folder, 'nothing');
  await expect(obtainRedis(() => {}, { path: folder, cache: empty })).rejects.toThrow(NoRedis);
  await expect(obtainRedis(() => {}, { path: folder, cache: empty })).rejects.toThrow(
    /brew install redis.*dnf.*apk.*docker/,
  );
});
