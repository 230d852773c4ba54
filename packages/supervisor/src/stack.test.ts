// `npm start`, with simulated services: the start, the stop, crashes, and one-line messages.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { appendFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { closeRedis, connectRedis, createLogger, redisReady } from '@inference-proxy/platform';
import { childEnvironment } from '@inference-proxy/test/environment';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { projectRoot } from './folders.ts';
import { alive, gone } from './parts/processes.ts';
import { freePort } from './ports.ts';

// A simulated service: sends the ready message, and ends on SIGTERM or after its parent.
const STAND_IN = `
const name = process.argv[1].match(/([a-z]+)\\.mjs$/)[1];
setInterval(() => {}, 1000);
const end = (why) => { console.log(name + ' ends: ' + why); process.exit(0); };
process.on('SIGTERM', () => end('SIGTERM'));
process.on('disconnect', () => end('alone'));
console.log(name + ' listening, sees JWT ' + Boolean(process.env.JWT_SECRET) + ', key ' + Boolean(process.env.SECRETS_KEY));
process.send?.({ ready: true });
`;
const BROKEN = `console.log('no luck'); process.exit(3);`;

const mainOf = (sources: string): string => `
import { runInTerminal } from '${sources}/terminal.ts';
import { serviceSpecs } from '${sources}/services.ts';
runInTerminal({
  services: (wiring) => serviceSpecs(wiring).map((spec) => ({ ...spec, entry: process.env.STAND_INS + '/' + spec.service + '.mjs' })),
  sameKeypressMs: Number(process.env.SAME_KEYPRESS_MS),
});
`;

let folder: string;
let started: Started[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stack-'));
  await writeFile(join(folder, 'main.mjs'), mainOf(import.meta.dirname));
  for (const name of ['gateway', 'worker', 'dispatcher', 'receiver'])
    await writeFile(join(folder, `${name}.mjs`), STAND_IN);
});
afterEach(async () => {
  for (const { child } of started) child.kill('SIGKILL');
  await Promise.all(started.map(({ ended }) => ended));
  started = [];
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  output(): string;
  /** Resolves when the output has `text` as often as `times`. */
  says(text: string, times?: number): Promise<void>;
  pids(): Record<string, number>;
}

function start(
  dataDir: string,
  port: number,
  env: Record<string, string> = {},
  main = join(folder, 'main.mjs'),
): Started {
  const child = spawn(process.execPath, ['--conditions=source', main], {
    env: childEnvironment({
      STAND_INS: folder,
      DATA_DIR: dataDir,
      PORT: String(port),
      RECEIVER_PORT: '0',
      // Longer than a busy machine can take between two signals that the test sends together.
      SAME_KEYPRESS_MS: '60000',
      ...env,
    }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const heard: (() => void)[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      for (const listener of heard) listener();
    });
  }
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const one: Started = {
    child,
    ended,
    output: () => output,
    says: (text, times = 1) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (output.split(text).length > times) resolve();
        };
        heard.push(look);
        look();
        void ended.then(() =>
          reject(new Error(`the stack ended without the output ${JSON.stringify(text)}:\n${output}`)),
        );
      }),
    pids: () => JSON.parse(readFileSync(join(dataDir, 'pids.json'), 'utf8')) as Record<string, number>,
  };
  started.push(one);
  return one;
}

test('npm start starts all parts, gives each part only its secrets, and Ctrl-C stops all parts in order, Redis last', async () => {
  const stack = start(join(folder, 'whole'), await freePort());
  await stack.says('Ready in');
  const pids = stack.pids();
  expect(Object.keys(pids).sort()).toEqual(['dispatcher', 'gateway', 'receiver', 'redis', 'supervisor', 'worker']);
  expect(stack.output()).toMatch(/gateway +\| gateway listening, sees JWT true, key true/);
  expect(stack.output()).toMatch(/dispatcher +\| dispatcher listening, sees JWT false, key true/);
  expect(stack.output()).toMatch(/worker +\| worker listening, sees JWT false, key false/);
  expect(stack.output()).toContain('curl -N -X POST "http://127.0.0.1:');
  stack.child.kill('SIGINT');
  stack.child.kill('SIGINT');
  expect(await stack.ended).toBe(0);
  expect([...stack.output().matchAll(/(\w+) ends: SIGTERM/g)].map((match) => match[1])).toEqual([
    'gateway',
    'worker',
    'dispatcher',
    'receiver',
  ]);
  expect(Object.values(pids).filter(alive)).toEqual([]);
});

test('a part that dies is restarted with its reason in the output; Redis returns at the same address', async () => {
  const stack = start(join(folder, 'dying'), await freePort());
  await stack.says('Ready in');
  const before = stack.pids();
  process.kill(before.worker as number, 'SIGKILL');
  await stack.says('worker ended (signal SIGKILL); starting it again in 0.25 s');
  await stack.says('worker listening', 2);
  process.kill(before.redis as number, 'SIGKILL');
  await stack.says('redis ended (signal SIGKILL)');
  const socket = join(folder, 'dying', 'redis', 'redis.sock');
  const password = readFileSync(join(folder, 'dying', 'redis-admin-password'), 'utf8');
  const url = `redis+unix://admin:${password}@localhost${socket}`;
  const client = connectRedis(url, 'test', createLogger({ name: 'test', level: 'silent' }));
  await redisReady(client);
  // Redis listens on the socket only, and only this user of the machine may enter its folder.
  expect(await client.config('GET', 'port')).toEqual(['port', '0']);
  expect(statSync(dirname(socket)).mode & 0o777).toBe(0o700);
  expect(await client.ping()).toBe('PONG');
  await closeRedis(client);
});

test('the processes of a killed supervisor end, and the next start replaces them', async () => {
  const data = join(folder, 'killed');
  const port = await freePort();
  const first = start(data, port);
  await first.says('Ready in');
  const left = Object.values(first.pids());
  first.child.kill('SIGKILL');
  const second = start(data, port);
  await second.says('Ready in');
  expect(await gone(left, 0)).toBe(true);
  second.child.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('a second stack on the same data folder is rejected in one line, and the first stack keeps running', async () => {
  const data = join(folder, 'shared');
  const first = start(data, await freePort());
  await first.says('Ready in');
  const second = start(data, await freePort());
  expect(await second.ended).toBe(1);
  expect(second.output()).toMatch(/^Cannot start: already running on .* \(process \d+\)[^\n]*\n$/);
  expect(alive(first.pids().gateway as number)).toBe(true);
});

test('a taken port is reported in one line, and no process stays', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const stack = start(join(folder, 'taken'), port);
  expect(await stack.ended).toBe(1);
  expect(stack.output()).toMatch(
    /^Cannot start: port \d+ on 127\.0\.0\.1 is taken by another program; choose another with PORT=\d+ npm start\n$/,
  );
  server.close();
});

test('a host that is not an address of this machine is reported in one line that names HOST', async () => {
  const stack = start(join(folder, 'elsewhere'), await freePort(), { HOST: '192.0.2.1' });
  expect(await stack.ended).toBe(1);
  expect(stack.output()).toBe(
    'Cannot start: 192.0.2.1 is not an address of this machine; choose another with HOST=127.0.0.1 npm start\n',
  );
});

test('in a clone without a Redis, one line has the commands to type', async () => {
  // A copy of the sources, because this clone may have downloaded a Redis.
  const clone = join(folder, 'clone');
  await cp(import.meta.dirname, join(clone, 'src'), { recursive: true });
  await symlink(join(projectRoot(), 'node_modules'), join(clone, 'node_modules'));
  await writeFile(join(clone, 'package-lock.json'), '{}');
  await writeFile(join(clone, 'main.mjs'), mainOf(join(clone, 'src')));
  const stack = start(join(folder, 'without'), await freePort(), { PATH: folder }, join(clone, 'main.mjs'));
  expect(await stack.ended).toBe(1);
  expect(stack.output()).toMatch(/^Cannot start: No Redis 7 on PATH[^\n]*brew install redis[^\n]*\n$/);
});

test.each([
  ['no Python', 'exit 127', /^Python 3\.9 or later is needed, as python3 on PATH[^\n]*\n$/],
  [
    'a Python that is too old',
    'echo False 3.8.1',
    /^Python 3\.9 or later is needed; python3 is 3\.8\.1; put a newer one first on PATH\n$/,
  ],
])('on a machine with %s, one line names the requirement', async (_, python, line) => {
  const programs = await mkdtemp(join(folder, 'programs-'));
  await writeFile(join(programs, 'python3'), `#!/bin/sh\n${python}\n`, { mode: 0o755 });
  const child = spawn(process.execPath, [join(projectRoot(), 'scripts', 'start.mjs')], {
    env: { PATH: `${programs}:${process.env.PATH}`, HOME: process.env.HOME },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [output, [code]] = await Promise.all([
    Promise.all([text(child.stdout), text(child.stderr)]),
    once(child, 'exit'),
  ]);
  expect([code, output[0]]).toEqual([1, '']);
  expect(output[1]).toMatch(line);
});

test('a part that never becomes ready ends the start with its reason, and no process stays', async () => {
  const broken = join(folder, 'broken');
  await mkdir(broken);
  for (const name of ['gateway', 'worker', 'dispatcher', 'receiver'])
    await writeFile(join(broken, `${name}.mjs`), name === 'worker' ? BROKEN : STAND_IN);
  const stack = start(join(folder, 'never'), await freePort(), { STAND_INS: broken });
  expect(await stack.ended).toBe(1);
  expect(stack.output()).toContain('Cannot start: worker does not start: exit code 3');
  expect(stack.output()).toContain('gateway ends: SIGTERM');
});

test('a file that Redis cannot read is reported in one line with the next step, and no process stays', async () => {
  const data = join(folder, 'damaged');
  const first = start(data, await freePort());
  await first.says('Ready in');
  first.child.kill('SIGTERM');
  await first.ended;
  const files = join(data, 'redis', 'appendonlydir');
  const name = readdirSync(files).find((file) => file.endsWith('.incr.aof')) as string;
  await appendFile(join(files, name), '\0\0\0*1\r\n');
  const second = start(data, await freePort());
  expect(await second.ended).toBe(1);
  const errors = second
    .output()
    .split('\n')
    .filter((line) => line.startsWith('Cannot start'));
  expect(errors).toEqual([expect.stringContaining(`Redis cannot read its file in ${files}`)]);
  expect(errors[0]).toContain(`redis-check-aof --fix ${join(files, 'appendonly.aof.manifest')}`);
});

test('a second Ctrl-C kills a part that ignores SIGTERM', async () => {
  const stubborn = join(folder, 'stubborn');
  await mkdir(stubborn);
  for (const name of ['gateway', 'worker', 'dispatcher', 'receiver'])
    await writeFile(join(stubborn, `${name}.mjs`), STAND_IN.replace("end('SIGTERM')", "console.log('no')"));
  const stack = start(join(folder, 'forced'), await freePort(), { STAND_INS: stubborn, SAME_KEYPRESS_MS: '300' });
  await stack.says('Ready in');
  const pids = Object.values(stack.pids());
  stack.child.kill('SIGINT');
  await stack.says('| no');
  const again = setInterval(() => stack.child.kill('SIGINT'), 100);
  const code = await stack.ended;
  clearInterval(again);
  expect(code).toBe(130);
  expect(pids.filter(alive)).toEqual([]);
});
