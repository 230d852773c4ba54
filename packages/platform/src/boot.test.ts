// Contract 6: the start and the stop of a service, in a real process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { childEnvironment } from '@inference-proxy/test/environment';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const SERVICE = `
import { Module } from '@nestjs/common';
import { bootService, commonSettings, nestContext, operationsPort, port, settingsOf } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))};
import { z } from 'zod';
class Settings extends settingsOf(z.object({ ...commonSettings, OPERATIONS_PORT: operationsPort('0'), PORT: port().describe('where it listens') })) {}
class Root {}
Module({})(Root);
await bootService({
  name: 'example', about: 'shows how a service starts', settings: Settings,
  async start(boot) {
    if (boot.settings.PORT === 1) throw new Error('port 1 is not for us');
    // More than a pipe holds.
    if (boot.settings.PORT === 2) for (let n = 0; n < 4000; n++) boot.logger.info({ wide: 'x'.repeat(1000) }, 'line');
    await nestContext(Root, boot);
    const timer = setInterval(() => {}, 1000);
    boot.shutdown.add('drain', 'timer', () => { clearInterval(timer); console.log('drained'); });
    return { port: boot.settings.PORT };
  },
});`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'boot-'));
  await writeFile(
    join(folder, 'service.mjs'),
    SERVICE.replace(/from '(@nestjs\/common|zod)'/g, (_, name: string) => `from '${import.meta.resolve(name)}'`),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function service(env: Record<string, string>, args: string[] = []) {
  const child = spawn(process.execPath, ['--conditions=source', join(folder, 'service.mjs'), ...args], {
    env: childEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  // The event 'close' never comes after the parent closed the IPC channel, so the event 'exit' is used.
  const ended = Promise.all([once(child, 'exit'), ...streams.map((stream) => text(stream))]).then(
    ([[code], ...output]) => ({ code: code as number | null, output: output.join('') }),
  );
  return { child: child as ChildProcess, ended };
}

const good = { REDIS_URL: 'redis://127.0.0.1:1', PORT: '8080' };

test('--help prints the settings and starts nothing', async () => {
  const { code, output } = await service({}, ['--help']).ended;
  expect(code).toBe(0);
  expect(output).toContain('example: shows how a service starts');
  expect(output).toContain('PORT');
});

test('wrong settings are listed together and end the start', async () => {
  const { code, output } = await service({ PORT: 'x' }).ended;
  expect(code).toBe(1);
  expect(output).toContain('PORT is wrong');
  expect(output).toContain('REDIS_URL is missing');
});

test('--check reports wrong settings, or that they are valid, and starts nothing', async () => {
  const right = await service(good, ['--check']).ended;
  expect([right.code, right.output]).toEqual([0, 'example: the settings are valid\n']);
  const wrong = await service({ ...good, PORT: 'x' }, ['--check']).ended;
  expect(wrong.code).toBe(1);
  expect(wrong.output).toContain('PORT is wrong');
});

test('a ready service sends its parent a message, and SIGTERM ends the service after its phases', async () => {
  const { child, ended } = service(good);
  expect(await once(child, 'message')).toEqual([
    { ready: true, port: 8080, operationsPort: expect.any(Number) },
    undefined,
  ]);
  child.kill('SIGTERM');
  const { code, output } = await ended;
  expect(code).toBe(0);
  expect(output).toContain('drained');
});

test('after SIGTERM a service reports not ready for SHUTDOWN_DELAY_S before its parts stop', async () => {
  const { child, ended } = service({ ...good, SHUTDOWN_DELAY_S: '600' });
  const [{ operationsPort }] = (await once(child, 'message')) as [{ operationsPort: number }, unknown];
  child.kill('SIGTERM');
  const ready = () => fetch(`http://127.0.0.1:${operationsPort}/readyz`).then(({ status }) => status);
  while ((await ready()) === 200);
  expect(await ready()).toBe(503);
  child.kill('SIGKILL');
  expect((await ended).output).not.toContain('drained');
});

test('after a second Ctrl-C a service still ends once, after its phases', async () => {
  const { child, ended } = service(good);
  await once(child, 'message');
  child.kill('SIGINT');
  child.kill('SIGINT');
  const { code, output } = await ended;
  expect(code).toBe(0);
  expect(output.match(/drained/g)).toHaveLength(1);
});

test('a service stops when its parent process ends', async () => {
  const { child, ended } = service(good);
  await once(child, 'message');
  child.disconnect();
  const { code, output } = await ended;
  expect(code).toBe(0);
  expect(output).toContain('drained');
});

test.each(['production', 'development'])(
  'in %s a service stops in order although its output is full and its reader does not read',
  async (NODE_ENV) => {
    const child = spawn(process.execPath, ['--conditions=source', join(folder, 'service.mjs')], {
      env: childEnvironment({ ...good, PORT: '2', NODE_ENV }),
      stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
    });
    await once(child, 'message');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    child.stdout?.destroy();
  },
);

test('a failed start logs the reason and exits with 1', async () => {
  const { code, output } = await service({ ...good, PORT: '1' }).ended;
  expect(code).toBe(1);
  expect(output).toContain('port 1 is not for us');
});
