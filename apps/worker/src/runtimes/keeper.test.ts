// harness/PROTOCOL.md, "The keeper", on real processes.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, test } from '@jest/globals';
import { FreedSlots } from './freed-slots.ts';
import { keeperMessage } from './keeper.ts';
import { pythonRuntimes } from './python.ts';
import type { Runtime } from './runtime.ts';
import { Call, reached } from './testing/calls.ts';

const MIB = 2 ** 20;
const logged: object[] = [];
const note = (fields: object, text: string): void => void logged.push({ ...fields, text });

const runtimes: Runtime[] = [];
afterEach(() => Promise.all(runtimes.splice(0).map((runtime) => runtime.close())));

interface Made {
  readonly env?: Readonly<Record<string, string>>;
  readonly memoryBytes?: number | undefined;
  readonly folder?: string;
}

function make(
  concurrency: number,
  { memoryBytes, env = {}, folder = join(import.meta.dirname, 'testing/hostile') }: Made,
): Runtime {
  const runtime = pythonRuntimes({
    maxItemBytes: 100_000,
    maxLogBytes: 100_000,
    logger: { info: note, warn: note, error: note },
    slots: new FreedSlots(),
    countsOf: () => ({ moved() {}, started() {}, crashed() {} }),
    environment: { ...process.env, REDIS_URL: 'redis://secret' },
  })({ project: 'demo', app: 'hostile', folder }, 'v1', {
    entrypoint: 'main.py',
    interpreter: process.env.PYTHON_UNDER_TEST,
    replicas: 1,
    replicaConcurrency: concurrency,
    startupTimeoutMs: 600_000,
    timeoutMs: 600_000,
    cancelGraceMs: 1_000,
    memoryBytes,
    maxOutputBytes: 200_000,
    debug: false,
    env,
  });
  runtimes.push(runtime);
  return runtime;
}

async function started(concurrency: number, memoryBytes?: number): Promise<Runtime> {
  const runtime = make(concurrency, { memoryBytes });
  runtime.start();
  await reached(runtime, 'ready');
  return runtime;
}

/** Returns a call's plain result. */
const resultOf = async (runtime: Runtime, fn: string, params: object = {}): Promise<unknown> =>
  JSON.parse((await new Call(runtime, fn, params).result()) ?? 'null');

const isRunning = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !stat.includes(') Z ');
};
const contained = (): boolean => logged.some((line) => 'contained' in line && line.contained === true);

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
  const worker = spawn('node', ['--conditions=source', script, 'hostile', 'leaves_a_daemon'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = (await once(worker.stdout, 'data')) as [Buffer];
  const pids = printed.toString().trim().split(' ').map(Number);
  for (const pid of pids) expect(await isRunning(pid)).toBe(true);
  worker.kill('SIGKILL');
  for (const pid of pids) while (await isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
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
  const folder = await mkdtemp(join(tmpdir(), 'app-'));
  await writeFile(join(folder, 'main.py'), 'import time\nheld = b"x" * (256 * 2**20)\ntime.sleep(60)\n');
  const runtime = make(1, { memoryBytes: 128 * MIB, folder });
  runtime.start();
  const run = new Call(runtime, 'anything');
  const told = () => logged.map((line) => JSON.stringify(line)).find((line) => line.includes('while starting'));
  while (told() === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(told()).toContain('[hardware] memory');
  await runtime.close();
  expect((await run.ended).state).toBe('failed');
  await rm(folder, { recursive: true });
});

test('a replica ends with its killed keeper, and is replaced', async () => {
  const runtime = await started(100);
  const before = (await resultOf(runtime, 'pid')) as number;
  const run = new Call(runtime, 'holds', { mebibytes: 1, seconds: 600 });
  await run.until(() => run.count >= 1);
  const [keeper] = (await resultOf(runtime, 'ancestors')) as [number];
  process.kill(keeper, 'SIGKILL');
  expect((await run.ended).error?.code).toBe('out_of_memory');
  expect(await resultOf(runtime, 'pid')).not.toBe(before);
  while (await isRunning(before)) await new Promise((resolve) => setTimeout(resolve, 10));
});

test('a stopped keeper is killed after its grace, and its replica ends too', async () => {
  const runtime = await started(1);
  const pid = (await resultOf(runtime, 'pid')) as number;
  const [keeper] = (await resultOf(runtime, 'ancestors')) as [number];
  process.kill(keeper, 'SIGSTOP');
  await runtime.close();
  for (const one of [pid, keeper]) while (await isRunning(one)) await new Promise((resolve) => setTimeout(resolve, 10));
});

test('a keeper uses neither the app’s interpreter nor the app’s environment', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'app-'));
  await cp(join(import.meta.dirname, 'testing/hostile'), folder, { recursive: true });
  await promisify(execFile)('python3', ['-m', 'venv', '--without-pip', join(folder, '.venv')]);
  const runtime = make(1, { folder, env: { LD_PRELOAD: '/nowhere.so', PATH: folder } });
  runtime.start();
  await reached(runtime, 'ready');
  const [keeper] = (await resultOf(runtime, 'ancestors')) as [number];
  const told = async (file: string): Promise<string[]> =>
    (await readFile(`/proc/${keeper}/${file}`, 'utf8')).split('\0');
  expect((await told('cmdline'))[0]?.startsWith(folder)).toBe(false);
  expect((await told('cmdline')).some((word) => word.startsWith(folder))).toBe(true);
  const names = (await told('environ')).map((line) => line.split('=')[0]);
  expect(names).toContain('KEPT_LD_PRELOAD');
  expect(names).not.toContain('LD_PRELOAD');
  expect(await resultOf(runtime, 'environment')).toMatchObject({ LD_PRELOAD: '/nowhere.so', PATH: folder });
  await runtime.close();
  await rm(folder, { recursive: true });
});

test('the memory of a function’s child counts', async () => {
  const runtime = await started(1, 128 * MIB);
  const over = new Call(runtime, 'holds_in_a_child', { mebibytes: 200 });
  expect((await over.ended).error?.code).toBe('out_of_memory');
  expect(await isRunning(Number(over.items[0]))).toBe(false);
});

test('memory that forked children share counts once', async () => {
  const runtime = await started(1, 160 * MIB);
  expect(await resultOf(runtime, 'shares', { mebibytes: 60, children: 4 })).toBe(60);
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
  const [keeper, worker] = (await resultOf(runtime, 'ancestors')) as [number, number];
  expect(worker).toBe(process.pid);
  const theirs = (await resultOf(other, 'pid')) as number;
  for (const target of [keeper, worker, theirs]) {
    const denied = contained();
    expect(await resultOf(runtime, 'signals', { target })).toBe(denied ? 'PermissionError' : 'allowed');
    if (!denied) continue;
    expect(await resultOf(runtime, 'reads', { path: `/proc/${target}/environ` })).toBe('PermissionError');
    expect(await resultOf(runtime, 'peeks', { target })).toBe(-1);
  }
  expect(await resultOf(runtime, 'signals', { target: await resultOf(runtime, 'pid') })).toBe('allowed');
});

test.each(['no JSON', '[]', '{"t":"kept"}', '{"t":"out_of_memory","bytes":-1}', '{"t":"other"}'])(
  '%s is not accepted as a keeper’s message',
  (line) => {
    expect(keeperMessage(line)).toBeUndefined();
  },
);
