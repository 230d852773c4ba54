// harness/PROTOCOL.md, "The keeper", on real processes.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from '@jest/globals';
import { keeperMessage } from './keeper.ts';
import type { Runtime } from './runtime.ts';
import { Call } from './testing/calls.ts';
import { gone, isRunning, Language, type LanguageName, resultOf } from './testing/languages.ts';

const MIB = 2 ** 20;
const HOSTILE = join(import.meta.dirname, 'testing/hostile');

describe.each<LanguageName>(['Python', 'Node'])('the keeper of a process of %s', (name) => {
  const language = new Language(name);
  afterEach(() => language.end());
  const started = (concurrency: number, memoryBytes?: number): Promise<Runtime> =>
    language.started(concurrency, { folder: HOSTILE, memoryBytes, cancelGraceMs: 1_000 });
  const contained = (): boolean => language.logged.some((line) => 'contained' in line && line.contained === true);

  test('a daemon in a separate session ends with its replica, whether the replica is closed or dies', async () => {
    const runtime = await started(100);
    const daemon = (await resultOf(runtime, 'leaves_a_daemon')) as number;
    expect(await isRunning(daemon)).toBe(true);
    const dying = new Call(runtime, 'leaves_a_daemon_and_exits');
    expect((await dying.ended).error).toMatchObject({ code: 'replica_crashed', message: expect.stringContaining('3') });
    // The replica's end is reported after all its processes have ended.
    for (const pid of [daemon, Number(dying.items[0])]) expect(await isRunning(pid)).toBe(false);
    const last = (await resultOf(runtime, 'leaves_a_daemon')) as number;
    await runtime.close();
    expect(await isRunning(last)).toBe(false);
  });

  test('a daemon ends with a worker that is killed', async () => {
    const script = join(import.meta.dirname, 'testing/doomed-worker.ts');
    const worker = spawn('node', ['--conditions=source', script, name, 'hostile'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [printed] = (await once(worker.stdout, 'data')) as [Buffer];
    const pids = printed.toString().trim().split(' ').map(Number);
    for (const pid of pids) expect(await isRunning(pid)).toBe(true);
    worker.kill('SIGKILL');
    for (const pid of pids) await gone(pid);
  });

  test('a replica over its memory limit ends with all its runs as out_of_memory, and is replaced', async () => {
    const runtime = await started(100, 128 * MIB);
    const before = await resultOf(runtime, 'pid');
    const neighbour = new Call(runtime, 'holds', { mebibytes: 1, seconds: 6000 });
    await neighbour.until(() => neighbour.count >= 1);
    const within = new Call(runtime, 'holds', { mebibytes: 40, seconds: 1.5 });
    expect(await within.ended).toMatchObject({ state: 'succeeded', items: 2 });
    const over = new Call(runtime, 'holds', { mebibytes: 200, seconds: 600 });
    for (const run of [over, neighbour]) {
      const { error } = await run.ended;
      expect(error?.code).toBe('out_of_memory');
      expect(error?.message).toContain('[hardware] memory');
    }
    expect(await resultOf(runtime, 'pid')).not.toBe(before);
  });

  test('an app over its memory limit at the start fails to start, with the reason', async () => {
    const folder = await language.appOf({
      Python: 'import time\nheld = b"x" * (256 * 2**20)\ntime.sleep(60)\n',
      Node: "export const held = Buffer.alloc(256 * 2 ** 20, 'x');\nawait new Promise((resolve) => setTimeout(resolve, 60_000));\n",
    });
    const runtime = language.make(1, { memoryBytes: 128 * MIB, folder });
    runtime.start();
    const run = new Call(runtime, 'anything');
    const logged = () =>
      language.logged.map((line) => JSON.stringify(line)).find((line) => line.includes('while starting'));
    while (logged() === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(logged()).toContain('[hardware] memory');
    await runtime.close();
    expect((await run.ended).state).toBe('failed');
  });

  test('a replica and its children end with their killed keeper, and the replica is replaced', async () => {
    const runtime = await started(100);
    const before = (await resultOf(runtime, 'pid')) as number;
    const run = new Call(runtime, 'holds_in_a_child', { mebibytes: 1 });
    await run.until(() => run.count >= 1);
    const child = Number(run.items[0]);
    expect(await isRunning(child)).toBe(true);
    const [keeper] = (await resultOf(runtime, 'ancestors')) as [number];
    process.kill(keeper, 'SIGKILL');
    expect((await run.ended).error?.code).toBe('out_of_memory');
    expect(await resultOf(runtime, 'pid')).not.toBe(before);
    for (const pid of [before, child]) await gone(pid);
  });

  test('a replica and its children end with a killed worker, even if their keeper is stopped', async () => {
    const script = join(import.meta.dirname, 'testing/doomed-worker.ts');
    const worker = spawn('node', ['--conditions=source', script, name], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [printed] = (await once(worker.stdout, 'data')) as [Buffer];
    const pids = printed.toString().trim().split(' ').map(Number);
    const status = await readFile(`/proc/${pids[0]}/status`, 'utf8');
    const keeper = Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]);
    process.kill(keeper, 'SIGSTOP');
    worker.kill('SIGKILL');
    for (const pid of pids) await gone(pid);
    process.kill(keeper, 'SIGKILL');
  });

  test('a stopped keeper is killed after its grace, and its replica ends too', async () => {
    const runtime = await started(1);
    const pid = (await resultOf(runtime, 'pid')) as number;
    const [keeper] = (await resultOf(runtime, 'ancestors')) as [number];
    process.kill(keeper, 'SIGSTOP');
    await runtime.close();
    for (const one of [pid, keeper]) await gone(one);
  });

  test('a keeper uses neither the app’s interpreter nor the app’s environment', async () => {
    const folder = await language.emptyFolder();
    await cp(HOSTILE, folder, { recursive: true });
    const interpreter = language.of({ Python: join(folder, '.venv/bin/python'), Node: join(folder, 'bin/node') });
    if (name === 'Python') await promisify(execFile)('python3', ['-m', 'venv', '--without-pip', join(folder, '.venv')]);
    else {
      await mkdir(join(folder, 'bin'));
      await symlink(process.execPath, interpreter);
    }
    const env = { LD_PRELOAD: '/nowhere.so', PATH: folder };
    const runtime = await language.started(1, { folder, interpreter, env });
    const [keeper] = (await resultOf(runtime, 'ancestors')) as [number];
    const readLines = async (file: string): Promise<string[]> =>
      (await readFile(`/proc/${keeper}/${file}`, 'utf8')).split('\0');
    expect((await readLines('cmdline'))[0]?.startsWith(folder)).toBe(false);
    expect((await readLines('cmdline')).some((word) => word.startsWith(folder))).toBe(true);
    const names = (await readLines('environ')).map((line) => line.split('=')[0]);
    expect(names).toContain('KEPT_LD_PRELOAD');
    expect(names).not.toContain('LD_PRELOAD');
    expect(await resultOf(runtime, 'environment')).toMatchObject(env);
  });

  test('the memory of a function’s child counts', async () => {
    const runtime = await started(1, 128 * MIB);
    const over = new Call(runtime, 'holds_in_a_child', { mebibytes: 200 });
    expect((await over.ended).error?.code).toBe('out_of_memory');
    expect(await isRunning(Number(over.items[0]))).toBe(false);
  });

  test('without a limit in the manifest, memory is unlimited', async () => {
    const runtime = await started(1);
    const run = new Call(runtime, 'holds', { mebibytes: 200, seconds: 1.2 });
    expect((await run.ended).state).toBe('succeeded');
  });

  test('a replica may open 8,192 files, writes no core, and is the first to end when the machine is out of memory', async () => {
    const runtime = await started(1);
    expect(await resultOf(runtime, 'limits')).toEqual({ files: 8_192, core: 0 });
    expect(await resultOf(runtime, 'oom_score_adj')).toBe(1_000);
  });

  test('a contained replica cannot signal, read or trace the worker or another app’s process', async () => {
    const runtime = await started(1);
    const other = await started(1);
    const refusals = language.of({
      Python: { signals: 'PermissionError', reads: 'PermissionError' },
      Node: { signals: 'EPERM', reads: 'EACCES' },
    });
    const [keeper, worker] = (await resultOf(runtime, 'ancestors')) as [number, number];
    expect(worker).toBe(process.pid);
    const theirs = (await resultOf(other, 'pid')) as number;
    for (const target of [keeper, worker, theirs]) {
      const denied = contained();
      expect(await resultOf(runtime, 'signals', { target })).toBe(denied ? refusals.signals : 'allowed');
      if (!denied) continue;
      expect(await resultOf(runtime, 'reads', { path: `/proc/${target}/environ` })).toBe(refusals.reads);
      // JavaScript has no way to make the system call of debuggers.
      if (name === 'Python') expect(await resultOf(runtime, 'peeks', { target })).toBe(-1);
    }
    expect(await resultOf(runtime, 'signals', { target: await resultOf(runtime, 'pid') })).toBe('allowed');
  });
});

test('memory that forked children share counts once', async () => {
  const language = new Language('Python');
  const runtime = await language.started(1, { folder: HOSTILE, memoryBytes: 160 * MIB });
  expect(await resultOf(runtime, 'shares', { mebibytes: 60, children: 4 })).toBe(60);
  await language.end();
});

test.each(['no JSON', '[]', '{"t":"kept"}', '{"t":"out_of_memory","bytes":-1}', '{"t":"other"}'])(
  '%s is not accepted as a keeper’s message',
  (line) => {
    expect(keeperMessage(line)).toBeUndefined();
  },
);
