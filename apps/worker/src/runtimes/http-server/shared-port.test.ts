// Contract 1, "Custom runtimes": a call of an app reaches this app, whichever process also wants or takes its port.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { Runtime } from '../runtime.ts';
import { reached } from '../testing/calls.ts';
import { DescriptorLimit } from '../testing/descriptor-limit.ts';
import { RecordedLog, request, type ServerUnderTest, serverRuntime, serversOf } from '../testing/servers.ts';
import { ListenerGuard } from './listener-guard.ts';
import { freePort } from './ports.ts';

jest.setTimeout(120_000);

let moods: string;
let log: RecordedLog;
const runtimes: Runtime[] = [];
const strangers: Server[] = [];
beforeEach(async () => {
  moods = await mkdtemp(join(tmpdir(), 'moods-'));
  log = new RecordedLog();
});
afterEach(async () => {
  await Promise.all(runtimes.splice(0).map((runtime) => runtime.close()));
  for (const stranger of strangers.splice(0)) stranger.close();
  await rm(moods, { recursive: true });
});

/** Longer than the test, so that only the call can notice the change. */
const SELDOM = { readyEveryMs: 50, wellEveryMs: 600_000, answerMs: 5_000 };

type Worker = ReturnType<typeof serversOf>;

/** A server that answers `/name` with its app's name and `/port` with its port. */
function app(name: string, worker: Worker, more: ServerUnderTest): Runtime {
  const runtime = serverRuntime(log, { app: name, folder: 'moody', env: { MOODS: moods }, ...more }, worker);
  runtimes.push(runtime);
  return runtime;
}

/** Starts a server outside the app. Returns a function that returns how many requests reached the server. */
async function stranger(port: number, host: string): Promise<() => number> {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests++;
    response.end('stranger');
  });
  strangers.push(server);
  await new Promise<void>((listening) => server.listen(port, host, listening));
  return () => requests;
}

const nameOf = (runtime: Runtime): Promise<string | undefined> => request(runtime, '/name').result();

test('of two apps with one port, the first serves, the second is broken, and no call reaches the wrong app', async () => {
  const port = await freePort();
  const worker = serversOf(log);
  const one = app('p5', worker, { port });
  const other = app('p6', worker, { port });
  other.start();
  one.start();
  await Promise.all([reached(one, 'ready'), reached(other, 'broken')]);
  expect(other.error?.message).toContain(`port ${port} is taken`);
  expect(other.error?.message).not.toContain('p5');
  expect(await nameOf(one)).toBe('p5');
  expect((await request(other, '/name').ended).error).toMatchObject({ code: 'app_failed_to_start' });
  await one.close();
  await reached(other, 'ready');
  expect(await nameOf(other)).toBe('p6');
});

test('a taken port that stands in entrypoint is replaced by a free port, and the app’s log reports the replacement', async () => {
  const port = await freePort();
  const worker = serversOf(log);
  const entrypoint = ['node', 'server.mjs', '--port', String(port)];
  const one = app('p5', worker, { port, entrypoint });
  const other = app('p6', worker, { port, entrypoint });
  one.start();
  other.start();
  await Promise.all([reached(one, 'ready'), reached(other, 'ready')]);
  expect(await nameOf(one)).toBe('p5');
  expect(await nameOf(other)).toBe('p6');
  expect(await request(one, '/port').result()).toBe(String(port));
  const instead = await request(other, '/port').result();
  expect(log.lines).toContain(
    `port ${port} is taken on this machine: the server starts on port ${instead}, which replaces ${port} in entrypoint`,
  );
});

test('with two workers on one machine, each call reaches its own app, although neither sees the other’s reservations', async () => {
  const port = await freePort();
  const entrypoint = ['node', 'server.mjs', '--port', String(port)];
  const apps = ['p5', 'p6', 'p7'].map((name) => app(name, serversOf(log), { port, entrypoint }));
  for (const one of apps) one.start();
  await Promise.all(apps.map((one) => reached(one, 'ready')));
  expect(await Promise.all(apps.map(nameOf))).toEqual(['p5', 'p6', 'p7']);
});

test('a server is not ready while another process listens on its port', async () => {
  const port = await freePort();
  await writeFile(join(moods, 'deaf'), '');
  const runtime = app('p5', serversOf(log), { port, startupTimeoutMs: 3_000 });
  runtime.start();
  await log.logged('deaf');
  const requests = await stranger(port, '127.0.0.1');
  await reached(runtime, 'broken');
  expect(runtime.error?.message).toContain(`port ${port} of this machine belongs to another process`);
  expect(requests()).toBe(0);
});

test('a worker without free file descriptors does not take a foreign process for the app', async () => {
  const port = await freePort();
  await stranger(port, '127.0.0.1');
  const guard = new ListenerGuard('127.0.0.1', port, process.ppid);
  const limit = new DescriptorLimit();
  try {
    await limit.exhaust();
    expect(() => guard.sockets()).toThrow('EMFILE');
  } finally {
    await limit.release();
  }
});

test('a server on ::1 is found beside another process on 127.0.0.1', async () => {
  const port = await freePort();
  const runtime = app('p5', serversOf(log), { port, env: { MOODS: moods, HOST: '::1' } });
  runtime.start();
  await reached(runtime, 'ready');
  const requests = await stranger(port, '127.0.0.1');
  expect(await nameOf(runtime)).toBe('p5');
  expect(requests()).toBe(0);
});

test('a new connection after the server left its port reaches no other process', async () => {
  const runtime = app('p5', serversOf(log, SELDOM), { port: await freePort() });
  runtime.start();
  await reached(runtime, 'ready');
  const port = Number(await request(runtime, '/port').result());
  expect(await request(runtime, '/leaves-its-port').result()).toBe('left');
  const requests = await stranger(port, '127.0.0.1');
  const end = await request(runtime, '/name', { method: 'POST', headers: [['x-secret', 'of p5']] }).ended;
  expect(end.error).toMatchObject({ code: 'upstream_unavailable' });
  expect(end.error?.message).toContain('belongs to another process');
  expect(requests()).toBe(0);
});

test('a server that listens again in another of its processes is called again', async () => {
  const runtime = app('p5', serversOf(log), { port: await freePort() });
  runtime.start();
  await reached(runtime, 'ready');
  const before = await request(runtime, '/pid').result();
  expect(await request(runtime, '/hands-its-port-to-a-child').result()).toBe('left');
  let after: string | undefined;
  while (after === undefined) after = await request(runtime, '/pid').result();
  expect(after).not.toBe(before);
});
