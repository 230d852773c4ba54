// Contract 1, "Custom runtimes": a server is started, checked, gets no runs while it is not ready, and is replaced when it is unhealthy.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { Runtime } from '../runtime.ts';
import { reached } from '../testing/calls.ts';
import { RecordedLog, request, type ServerUnderTest, serverRuntime } from '../testing/servers.ts';
import { freePort } from './ports.ts';
import { findProgram } from './server-program.ts';

jest.setTimeout(120_000);

let moods: string;
let log: RecordedLog;
const runtimes: Runtime[] = [];
beforeEach(async () => {
  moods = await mkdtemp(join(tmpdir(), 'moods-'));
  log = new RecordedLog();
});
afterEach(async () => {
  await Promise.all(runtimes.splice(0).map((runtime) => runtime.close()));
  await rm(moods, { recursive: true });
});

const mood = (name: string): Promise<void> => writeFile(join(moods, name), '');
const over = (name: string): Promise<void> => rm(join(moods, name));

function begun(more: ServerUnderTest = {}): Runtime {
  const runtime = serverRuntime(log, { folder: 'moody', env: { MOODS: moods }, ...more });
  runtimes.push(runtime);
  runtime.start();
  return runtime;
}

async function ready(more: ServerUnderTest = {}): Promise<Runtime> {
  const runtime = begun(more);
  await reached(runtime, 'ready');
  return runtime;
}

/** Resolves when the runtime's slots become available or unavailable. */
async function slots(runtime: Runtime, are: boolean): Promise<void> {
  while (runtime.freeSlots > 0 !== are) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('a server is ready when its readiness check succeeds, and not before', async () => {
  await mood('unready');
  const runtime = begun({ readycheck: '/ready' });
  await log.logged('readiness checked');
  expect(runtime.state).toBe('starting');
  await over('unready');
  await reached(runtime, 'ready');
  expect(runtime.freeSlots).toBe(100);
});

test('a server that is temporarily not ready gets no new runs, and keeps its open runs', async () => {
  const runtime = await ready({ readycheck: '/ready' });
  const run = request(runtime, '/hangs');
  await run.until(() => run.count >= 1);
  await mood('unready');
  await slots(runtime, false);
  expect(runtime.state).toBe('ready');
  expect(run.ends).toBe(0);
  await over('unready');
  await slots(runtime, true);
  run.running?.cancel('cancelled');
  expect((await run.ended).state).toBe('cancelled');
});

test('an unhealthy server is replaced, and the next call works', async () => {
  const runtime = await ready({ healthcheck: '/health' });
  const before = await request(runtime, '/pid').result();
  await mood('unwell');
  await log.logged('health check failed: /health answered 500');
  await over('unwell');
  await log.logged('process ready', 2);
  expect(await request(runtime, '/pid').result()).not.toBe(before);
  expect(log.counted).toEqual(['start ready', 'crash unhealthy', 'start ready']);
});

test('a server that answers no check because it is busy with a run is healthy', async () => {
  const watch = { readyEveryMs: 50, wellEveryMs: 50, answerMs: 700 };
  const runtime = await ready({ healthcheck: '/health', readycheck: '/ready', watch, concurrency: 1 });
  const before = await request(runtime, '/pid').result();
  const run = request(runtime, '/blocks');
  // Longer than three checks.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await mood('done');
  expect(await run.result()).toBe('done');
  expect(await request(runtime, '/pid').result()).toBe(before);
});

test('a server that exits while starting is reported with its last line, and retried', async () => {
  await mood('exits');
  const runtime = begun();
  await reached(runtime, 'broken');
  expect(runtime.error).toMatchObject({ code: 'app_failed_to_start' });
  expect(runtime.error?.message).toContain('exited with code 7: no module named model');
  expect((await request(runtime, '/pid').ended).error).toMatchObject({ code: 'app_failed_to_start' });
  await over('exits');
  await reached(runtime, 'ready');
  expect(await request(runtime, '/pid').result()).toMatch(/^\d+$/);
});

test('a server that never listens is given up at the time limit of the start', async () => {
  await mood('deaf');
  const runtime = begun({ startupTimeoutMs: 500 });
  await reached(runtime, 'broken');
  expect(runtime.error?.message).toBe('the server was not ready within 0.5 s: it takes no connections');
});

test('a missing program is named', async () => {
  begun({ entrypoint: ['no-such-server', '{port}'] });
  await log.logged('a process did not start');
  expect(log.counted).toEqual(['start failed']);
  await expect(findProgram('no-such-server', '/', '/usr/bin')).rejects.toThrow('no program no-such-server on the PATH');
  await expect(findProgram('./server', '/apps/mine', '/usr/bin')).rejects.toThrow('no program ./server');
});

test('each replica listens on a separate port', async () => {
  const runtime = begun({ replicas: 2, concurrency: 1 });
  await log.logged('process ready', 2);
  const [one, other] = [request(runtime, '/port'), request(runtime, '/port')];
  expect(await one.result()).not.toBe(await other.result());
});

test('a port of another process is not mistaken for the server’s port', async () => {
  const stranger = createServer((_request, response) => response.end('stranger'));
  const port = await freePort();
  await new Promise<void>((resolve) => stranger.listen(port, resolve));
  const runtime = begun({ port });
  await log.logged('a process did not start');
  expect(runtime.freeSlots).toBe(0);
  await new Promise((resolve) => stranger.close(resolve));
  await reached(runtime, 'ready');
  expect(await request(runtime, '/port').result()).toBe(String(port));
});

test('with kill_on_cancel, a cancelled run ends its server after the other runs', async () => {
  const runtime = await ready({ killOnCancel: true });
  const before = await request(runtime, '/pid').result();
  const [one, other] = [request(runtime, '/hangs'), request(runtime, '/hangs')];
  await Promise.all([one, other].map((run) => run.until(() => run.count >= 1)));
  one.running?.cancel('cancelled');
  expect((await one.ended).state).toBe('cancelled');
  await log.logged('process ready', 2);
  expect(await request(runtime, '/pid').result()).not.toBe(before);
  expect(other.ends).toBe(0);
  other.running?.cancel('cancelled');
  await other.ended;
});

test('a remote server serves while it answers, is reported while it does not, and is found again', async () => {
  const port = await freePort();
  const elsewhere = () => createServer((call, response) => response.end(`elsewhere ${call.url}`));
  let server = elsewhere().listen(port, '127.0.0.1');
  const runtime = await ready({ url: `http://127.0.0.1:${port}/base`, startupTimeoutMs: 3_000 });
  expect(await request(runtime, '/a?b').result()).toBe('elsewhere /base/a?b');
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await reached(runtime, 'broken');
  expect(runtime.error?.message).toContain('ECONNREFUSED');
  server = elsewhere().listen(port, '127.0.0.1');
  await reached(runtime, 'ready');
  expect(await request(runtime, '/').result()).toBe('elsewhere /base/');
  server.closeAllConnections();
  server.close();
});

test('a server over its memory limit is ended with that reason, and replaced', async () => {
  const runtime = await ready({ memoryBytes: 256 * 1024 * 1024 });
  const end = await request(runtime, '/hoards').ended;
  expect(end).toMatchObject({ state: 'failed', error: { code: 'out_of_memory' } });
  expect(end.error?.message).toMatch(/^the server's processes were ended: they held \d+ MiB/);
  await log.logged('process ready', 2);
  expect(await request(runtime, '/pid').result()).toMatch(/^\d+$/);
});

const isRunning = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !stat.includes(') Z ');
};

test('a server and its children end with their worker, even if the worker is killed', async () => {
  const doomed = spawn(
    process.execPath,
    ['--conditions=source', join(import.meta.dirname, '../testing/doomed-servers.ts')],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '' },
    },
  );
  const [line] = (await once(doomed.stdout, 'data')) as [Buffer];
  const pids = line.toString().trim().split(' ').map(Number);
  expect(pids).toHaveLength(2);
  expect(await Promise.all(pids.map(isRunning))).toEqual([true, true]);
  doomed.kill('SIGKILL');
  while ((await Promise.all(pids.map(isRunning))).includes(true))
    await new Promise((resolve) => setTimeout(resolve, 10));
});
