// `npm start -- --scale gateway=2 --scale worker=2` with the built services: one port stays served while processes die.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, instancesOf, projectRoot } from '@inference-proxy/supervisor';
import { expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';

test('two gateways and two workers answer on one port; a gateway killed under load is removed immediately and returns', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'scale-'));
  const port = await freePort();
  const main = join(projectRoot(), 'packages', 'supervisor', 'dist', 'main.js');
  const child = spawn(process.execPath, [main, '--scale', 'gateway=2', '--scale=worker=2', '--scale=dispatcher=2'], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DATA_DIR: folder,
      PORT: String(port),
      RECEIVER_PORT: '0',
      DEPLOYMENTS_DIR: join(projectRoot(), 'test', 'apps'),
      WORKER_APPS: 'demo/streams',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const says = (text: string) =>
    until(() => output.includes(text) || (child.exitCode !== null && Promise.reject(output)));
  try {
    await says('Ready in');
    const pids = (): Record<string, number> => JSON.parse(readFileSync(join(folder, 'pids.json'), 'utf8'));
    const before = pids();
    const names = ['gateway', 'worker', 'dispatcher'].flatMap((name) => instancesOf(name, 2));
    expect(Object.keys(before).sort()).toEqual([...names, 'receiver', 'redis', 'supervisor'].sort());
    const caller = new Caller(port, (await readFile(join(folder, 'jwt-secret'), 'utf8')).trim());
    await caller.ready('streams');

    // Both gateways have calls, because each writes a line under its name.
    for (let k = 0; k < 4; k++) expect((await caller.call('streams/value', { value: k })).status).toBe(200);
    for (const name of instancesOf('gateway', 2)) await says(`${name}    | `);
    const { events } = await caller.stream('streams/sleeping', { n: 4, seconds: 0.3 });
    expect(await events.rest()).toEqual(['data: 0', 'data: 1', 'data: 2', 'data: 3']);

    // Calls that are open at the killed gateway may fail. Calls that begin after its death must succeed.
    const calls: { readonly beganAt: number; readonly outcome: Promise<number | string> }[] = [];
    let open = 0;
    const load = setInterval(() => {
      // The limit keeps the load low enough for a slow machine.
      if (open === 8) return;
      open++;
      const outcome = caller.call('streams/value', { value: 1 }).then(
        ({ status }) => status,
        (error: NodeJS.ErrnoException) => error.code ?? error.message,
      );
      void outcome.then(() => open--);
      calls.push({ beganAt: performance.now(), outcome });
    }, 25);
    await until(() => calls.length >= 20);
    process.kill(before['gateway-1'] as number, 'SIGKILL');
    await says('gateway-1 ended (signal SIGKILL); starting it again');
    const deadAt = performance.now();
    const again = await until(() => {
      const pid = pids()['gateway-1'];
      return pid !== undefined && pid !== before['gateway-1'] && pid;
    });
    expect(again).toBeGreaterThan(0);
    await until(() => calls.filter(({ beganAt }) => beganAt > deadAt).length >= 40);
    clearInterval(load);
    const outcomes = await Promise.all(calls.map(async ({ beganAt, outcome }) => ({ beganAt, is: await outcome })));
    expect(outcomes.filter(({ beganAt, is }) => beganAt > deadAt && is !== 200)).toEqual([]);
    expect(outcomes.filter(({ is }) => is !== 200 && is !== 'ECONNRESET')).toEqual([]);

    // The restarted gateway takes its turns again.
    const lines = (): number => output.split('gateway-1    | ').length;
    const had = lines();
    await until(async () => (await caller.call('streams/value', { value: 2 })).status === 200 && lines() > had + 2);

    const stopping = caller.stream('streams/sleeping', { n: 3, seconds: 0.4 });
    const streamed = await stopping;
    await streamed.events.next();
    child.kill('SIGTERM');
    expect(await streamed.events.rest()).toEqual(['data: 1', 'data: 2']);
    expect((await ended)[0]).toBe(0);
  } finally {
    if (child.exitCode === null) child.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
});
