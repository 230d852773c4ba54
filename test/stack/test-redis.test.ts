// The private Redis of a test file: keeps data over a restart, and ends with the test process.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedis } from './test-redis.ts';

const run = promisify(execFile);

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

test('a server does not outlive a test process that is killed', async () => {
  const script = `const {testRedis} = await import('./test-redis.ts'); const r = await testRedis(); console.log(r.pid); setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(owner.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  owner.kill('SIGKILL');
  // `tail --pid` returns when the process has ended.
  await run('tail', [`--pid=${pid}`, '-f', '/dev/null'], { timeout: 120_000 });
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
