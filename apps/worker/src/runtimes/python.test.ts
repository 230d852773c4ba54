// Contract 1 and harness/PROTOCOL.md: apps in Python, on real processes.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { conformance, type ShortLimits } from './conformance.ts';
import { FreedSlots } from './freed-slots.ts';
import { functionConformance } from './function-conformance.ts';
import type { ProcessCounts } from './pool.ts';
import { pythonRuntimes } from './python.ts';
import type { Runtime } from './runtime.ts';
import { Call, reached } from './testing/calls.ts';

const lines: string[] = [];
const note = (_fields: object, text: string): void => {
  lines.push(text);
};
/** Processes by state, and the other metrics of processes. */
const counted: Record<string, number> = {};
const count = (name: string, by = 1): void => {
  counted[name] = (counted[name] ?? 0) + by;
};
const counts: ProcessCounts = {
  moved(from, to) {
    if (from) count(from, -1);
    count(to);
  },
  started: (result) => count(`start ${result}`),
  crashed: (how) => count(`crash ${how}`),
};
const options = {
  maxItemBytes: 100_000,
  maxLogBytes: 256 * 1024,
  logger: { info: note, warn: note, error: note },
  slots: new FreedSlots(),
  countsOf: () => counts,
  environment: { ...process.env, REDIS_URL: 'redis://secret' },
};

/** Longer than a test may take, so no run reaches this limit. */
const NEVER_MS = 600_000;

const make = (
  concurrency: number,
  more: ShortLimits & {
    readonly folder?: string;
    readonly memoryBytes?: number;
    readonly teardownMs?: number;
    readonly maxOutputBytes?: number;
  } = {},
): Runtime =>
  pythonRuntimes({ ...options, teardownMs: more.teardownMs ?? NEVER_MS })(
    { project: 'demo', app: 'test', folder: more.folder ?? join(import.meta.dirname, 'testing/python') },
    'v1',
    {
      entrypoint: 'main.py',
      interpreter: process.env.PYTHON_UNDER_TEST,
      replicas: 1,
      replicaConcurrency: concurrency,
      startupTimeoutMs: NEVER_MS,
      timeoutMs: more.timeoutMs ?? NEVER_MS,
      cancelGraceMs: more.cancelGraceMs ?? NEVER_MS,
      memoryBytes: more.memoryBytes,
      maxOutputBytes: more.maxOutputBytes ?? 200_000,
      debug: false,
      env: { GREETING: 'hello' },
    },
  );

conformance('Python', {
  make,
  call: (runtime, deed, params, paced) => new Call(runtime, deed, params, paced),
  broken: 'function_error',
  cleanedUp: async (run) => expect(run.printed).toContain('cleaned up'),
});
functionConformance('Python', make);

let runtime: Runtime;
const call = (fn: string, params: object | string = {}, paced = false): Call => new Call(runtime, fn, params, paced);
const folders: string[] = [];

beforeAll(async () => {
  runtime = make(100);
  runtime.start();
  await reached(runtime, 'ready');
});
afterAll(() => runtime.close());
afterEach(() => Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true }))));

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'app-'));
  folders.push(folder);
  return folder;
}

async function appOf(code: string): Promise<string> {
  const folder = await emptyFolder();
  await writeFile(join(folder, 'main.py'), code);
  return folder;
}

const isRunning = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !stat.includes(') Z ');
};

test.each([
  ['iterator', ['2', '1', '0']],
  ['decorated', ['1', '2']],
  ['async_items', ['0', '1', '2']],
  ['gives_a_generator', ['item 0', 'item 1', 'item 2']],
])('%s is a stream', async (fn, items) => {
  const run = call(fn);
  expect(await run.ended).toMatchObject({ state: 'succeeded', streamed: true, items: items.length });
  expect(run.items).toEqual(items);
});

test('async functions and decorated functions return their value', async () => {
  expect(await call('async_value', { x: [1] }).result()).toBe('[1]');
  expect(await call('decorated_with_wraps', { x: 1 }).result()).toBe('1');
});

test('a TypeError inside the function is an error of the function', async () => {
  expect((await call('type_error_inside').ended).error).toMatchObject({ code: 'function_error', type: 'TypeError' });
});

test('sys.exit is an exception of the function, and other runs continue', async () => {
  const folder = await emptyFolder();
  const neighbour = call('step_by_step', { folder, n: 1 });
  await neighbour.until(() => neighbour.count === 1);
  expect((await call('leaves').ended).error).toMatchObject({
    code: 'function_error',
    type: 'SystemExit',
    message: '3',
  });
  await writeFile(join(folder, '0'), '');
  expect((await neighbour.ended).state).toBe('succeeded');
});

test('lone surrogates do not break an answer', async () => {
  expect(await call('surrogate').result()).toBe('"a\\ud800b"');
  const run = call('surrogate_items');
  await run.ended;
  expect(run.items).toEqual(['a\ufffdb', '["a\\ud800b"]']);
});

test('the output of Python code, C code and children is logged, and never in the stream', async () => {
  const run = call('prints');
  expect(await run.ended).toMatchObject({ state: 'succeeded', items: 2 });
  expect(run.items).toEqual(['1', '2']);
  expect(run.printed).toEqual(expect.arrayContaining(['to stdout', 'to stderr', 'raw', 'from a child', 'no newline']));
  expect(run.lines.find(({ text }) => text === 'to stderr')).toMatchObject({ stream: 'stderr' });
});

const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test('a hundred runs print and log at once: each run has all its lines in order, and no line is lost', async () => {
  const n = 150;
  const runs = numbers(100).map((i) => {
    const fn = ['says_much', 'says_much_async', 'streams_and_says'][i % 3] as string;
    return { fn, name: `run-${i}`, run: call(fn, { name: `run-${i}`, n }) };
  });
  for (const { fn, name, run } of runs) {
    expect((await run.ended).state).toBe('succeeded');
    expect(run.cut).toBe(0);
    const said = (who: string, count: number): string[] =>
      numbers(count).flatMap((i) => [`${who} prints ${i}`, `${who} logs ${i}`]);
    if (fn === 'says_much_async') {
      for (const part of [`${name} a`, `${name} b`])
        expect(run.printed.filter((text) => text.startsWith(part))).toEqual(said(part, n / 2));
      expect(run.printed).toHaveLength(n * 2);
    } else {
      expect(run.printed).toEqual(said(name, n));
    }
    expect(run.lines.every(({ stream, text }) => stream === (text.includes('prints') ? 'stdout' : 'stderr'))).toBe(
      true,
    );
  }
});

test('the output of a function’s threads and pool work belongs to its run, and to no run after its end', async () => {
  const path = join(await emptyFolder(), 'ended');
  const runs = numbers(10).map((i) => ({ name: `run-${i}`, run: call('says_by_others', { name: `run-${i}`, path }) }));
  for (const { name, run } of runs) {
    await run.ended;
    expect(run.printed).toEqual([`${name} own thread`, ...numbers(20).map((i) => `${name} pool ${i}`)]);
  }
  await writeFile(path, '');
  while (!lines.some((text) => text.endsWith(' late'))) await new Promise((resolve) => setTimeout(resolve, 10));
  const awaited = call('says_in_a_thread', { name: 'awaited' });
  await awaited.ended;
  expect(awaited.printed).toEqual(['awaited to_thread', 'awaited executor']);
});

test('a function that prints in a loop loses only its oldest lines, and does not delay other runs', async () => {
  const path = join(await emptyFolder(), 'enough');
  const flood = call('prints_a_flood', { lines: 200_000, path });
  await flood.until(() => flood.lines.length > 0);
  for (let times = 0; times < 20; times++) expect(await call('add', { a: 1 }).result()).toBe('3');
  expect(flood.ends).toBe(0);
  await writeFile(path, '');
  const printed = Number(await flood.result());
  expect(flood.printed.at(-1)).toBe('last');
  expect(flood.cut).toBeGreaterThan(0);
  expect(flood.printed.length + flood.cut).toBe(printed);
});

test('lines of a child process that prints without end are read at a limited rate', async () => {
  const began = performance.now();
  const run = call('child_prints_a_flood', { seconds: 1 });
  await run.until(() => run.lines.length > 0); // if another run were open from the start, the lines would belong to no run
  expect(await call('add', { a: 1 }).result()).toBe('3');
  await run.ended;
  expect(run.printed.slice(0, 3)).toEqual(['y', 'y', 'y']);
  // 50 lines a millisecond, and the content of the pipe once or twice. The child prints tens of thousands.
  expect(run.lines.length + run.cut).toBeLessThan((performance.now() - began) * 100 + 200_000);
});

test('an app may use every method of a text stream on stdout and stderr while it is imported', async () => {
  const folder = await appOf(`
import io, logging, sys
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding="ascii", errors="replace", newline="\\n", line_buffering=True, write_through=True)
    seen = [stream.encoding, stream.errors, stream.line_buffering, stream.write_through]
    assert seen == ["ascii", "replace", True, True], seen
    stream.reconfigure(encoding="utf-8")
    assert [stream.encoding, stream.errors] == ["utf-8", "strict"]
    for wrong in ({"encoding": "no such"}, {"errors": "no such"}, {"newline": "x"}):
        try:
            stream.reconfigure(**wrong)
        except (LookupError, ValueError):
            continue
        raise AssertionError(wrong)
    assert stream.mode == "w" and stream.newlines is None and stream.name in ("<stdout>", "<stderr>")
    assert stream.writable() and not stream.readable() and not stream.seekable() and not stream.isatty()
    assert stream.fileno() in (1, 2) and not stream.closed
    stream.writelines(["by writelines\\n"])
    stream.flush()
    stream.buffer.write(b"by the buffer\\n")
    stream.buffer.flush()
missing = [n for n in dir(io.TextIOWrapper) if not n.startswith("_") and not hasattr(sys.stdout, n)]
assert missing == [], missing
kept = sys.stdout
sys.stderr = io.TextIOWrapper(sys.stderr.detach(), encoding="utf-8", write_through=True)
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", write_through=True)
def prints():
    print("by a new stream", flush=True)
    print("by the old stream: \\u20ac", file=kept)
`);
  const own = make(100, { folder });
  own.start();
  await reached(own, 'ready');
  const run = new Call(own, 'prints');
  expect((await run.ended).state).toBe('succeeded');
  expect(run.printed).toEqual(expect.arrayContaining(['by a new stream', 'by the old stream: €']));
  await own.close();
});

test('a forked child that returns from the function ends there', async () => {
  expect(await call('forked_child_comes_back').result()).toBe('"parent"');
  expect(await call('add', { a: 1 }).result()).toBe('3');
});

test('a forked child that continues does not delay the end', async () => {
  // The child lives longer than this test may take.
  expect((await call('forked_child_stays').ended).error?.code).toBe('replica_crashed');
});

test('deep recursion is an error of the function, not a crash', async () => {
  for (const through_c of [false, true]) {
    expect((await call('recurses', { through_c }).ended).error).toMatchObject({ type: 'RecursionError' });
  }
});

test('twenty sleeping generators stream side by side', async () => {
  const folder = await emptyFolder();
  const runs = numbers(20).map((i) => call('meets', { folder, name: `${i}`, n: 20 }));
  for (const run of runs) expect(await run.ended).toMatchObject({ state: 'succeeded', items: 2 });
});

test('a cancelled run that does not end harms no other run', async () => {
  const folder = await emptyFolder();
  const own = make(100, { cancelGraceMs: 1_000 });
  own.start();
  await reached(own, 'ready');
  const neighbour = new Call(own, 'step_by_step', { folder, n: 3 });
  await neighbour.until(() => neighbour.count === 1);
  const stuck = new Call(own, 'blocked');
  await stuck.until(() => stuck.count === 1);
  stuck.running?.cancel('cancelled');
  expect((await stuck.ended).state).toBe('cancelled');
  for (const step of numbers(3)) await writeFile(join(folder, `${step}`), '');
  expect(await neighbour.ended).toMatchObject({ state: 'succeeded', items: 3 });
  await own.close();
});

test('a task that has noticed its cancel early cleans up undisturbed', async () => {
  const run = call('cancelled_twice');
  await run.until(() => run.count > 0);
  run.running?.cancel('cancelled');
  expect((await run.ended).state).toBe('cancelled');
  expect(run.printed).toEqual(['cleaned up']);
});

test('the app sees an allow-list of the environment and its own settings', async () => {
  const environment = JSON.parse((await call('environment').result()) ?? '{}');
  expect(environment).toMatchObject({ GREETING: 'hello', PROJECT_ID: 'demo', APP_NAME: 'test', PYTHONUNBUFFERED: '1' });
  expect(environment).not.toHaveProperty('REDIS_URL');
});

test('multiprocessing works', async () => {
  expect(await call('pool_of_processes').result()).toBe('[1]');
});

test('a dead process gets no run, even before its end is reported', async () => {
  const own = make(100);
  own.start();
  await reached(own, 'ready');
  const [keeper, pid] = JSON.parse((await new Call(own, 'own_processes').result()) ?? '') as [number, number];
  // The keeper would immediately report that the process has ended.
  process.kill(keeper, 'SIGSTOP');
  process.kill(pid, 'SIGKILL');
  while (own.freeSlots > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(await isRunning(keeper)).toBe(true);
  const next = new Call(own, 'pid').result();
  process.kill(keeper, 'SIGCONT');
  expect(await next).not.toBe(String(pid));
  await own.close();
});

test('the children of a function end with its process', async () => {
  const own = make(100);
  own.start();
  await reached(own, 'ready');
  const child = Number(await new Call(own, 'leaves_a_child').result());
  expect(await isRunning(child)).toBe(true);
  await own.close();
  while (await isRunning(child)) await new Promise((resolve) => setTimeout(resolve, 10));
});

test('no process outlives a killed worker, even if C code holds the interpreter’s lock', async () => {
  const script = join(import.meta.dirname, 'testing/doomed-worker.ts');
  const worker = spawn('node', ['--conditions=source', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [told] = (await once(worker.stdout, 'data')) as [Buffer];
  const pids = told.toString().trim().split(' ').map(Number);
  for (const pid of pids) expect(await isRunning(pid)).toBe(true);
  worker.kill('SIGKILL');
  for (const pid of pids) while (await isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
});

test('an app whose import fails is broken, with the reason', async () => {
  const own = make(100, { folder: await appOf('import json\nraise RuntimeError("no model")\n') });
  own.start();
  const early = new Call(own, 'anything');
  await reached(own, 'broken');
  expect(own.error).toMatchObject({ code: 'app_failed_to_start', type: 'RuntimeError' });
  expect(own.error?.message).toContain('no model');
  expect((await early.ended).error?.code).toBe('app_failed_to_start');
  expect((await new Call(own, 'anything').ended).error?.code).toBe('app_failed_to_start');
  await own.close();
});

test('metrics count processes by state, starts by result and crashes by kind', async () => {
  const before = { ...counted };
  const own = make(1);
  const moved = (name: string): number => (counted[name] ?? 0) - (before[name] ?? 0);
  own.start();
  await reached(own, 'ready');
  expect([moved('spawning'), moved('loading'), moved('ready'), moved('start ready')]).toEqual([0, 0, 1, 1]);
  await new Call(own, 'exits').ended;
  while (moved('start ready') < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Call(own, 'segfaults').ended;
  expect([moved('crash exit'), moved('crash signal'), moved('crash channel')]).toEqual([1, 1, 0]);
  await own.close();
  expect(['spawning', 'loading', 'ready', 'retiring', 'draining', 'failed'].map(moved)).toEqual([0, 0, 0, 0, 0, 0]);
});

/** The part of OpenTelemetry's API for Python that tracing in an app uses. */
const OPENTELEMETRY = {
  '__init__.py': '',
  'propagate.py': 'def extract(carrier):\n    return carrier\n',
  'context.py': `import contextvars
current = contextvars.ContextVar("current", default=None)
def attach(context):
    if context["traceparent"].endswith("-00"): raise RuntimeError("not this one")
    current.set(context["traceparent"])
`,
};

test('the spans of a function belong to the trace of its own call, in threads, tasks and generators', async () => {
  const folder = await appOf(`
import asyncio
from opentelemetry.context import current
def plain(): return current.get()
def streamed(): yield current.get()
async def awaited():
    await asyncio.sleep(0)
    return current.get()
`);
  await mkdir(join(folder, 'opentelemetry'));
  for (const [name, code] of Object.entries(OPENTELEMETRY)) await writeFile(join(folder, 'opentelemetry', name), code);
  for (const concurrency of [1, 100]) {
    const own = make(concurrency, { folder });
    own.start();
    await reached(own, 'ready');
    const traceparent = `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b${concurrency % 9}-01`;
    expect(await new Call(own, 'plain', {}, false, traceparent).result()).toBe(JSON.stringify(traceparent));
    expect(await new Call(own, 'awaited', {}, false, traceparent).result()).toBe(JSON.stringify(traceparent));
    const streamed = new Call(own, 'streamed', {}, false, traceparent);
    await streamed.ended;
    expect(streamed.frames.map(({ blob }) => blob.toString())).toEqual([traceparent]);
    expect(await new Call(own, 'plain').result()).toBe('null');
    const refused = new Call(own, 'plain', {}, false, traceparent.replace(/01$/, '00'));
    expect(await refused.result()).toBe('null');
    await own.close();
  }
});

test('an app that breaks the channel while it is imported fails to start, and is not restarted at once', async () => {
  const junk = 'import os\nfor fd in range(100, 130):\n    try: os.write(fd, b"junk\\n")\n    except OSError: pass\n';
  const own = make(100, { folder: await appOf(junk) });
  const told = lines.length;
  own.start();
  const count = (text: string): number => lines.slice(told).filter((line) => line === text).length;
  while (count('a process did not start') === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(count('a process ended by itself')).toBe(0);
  await own.close();
});

test('a function that forges the header of a large frame ends its process, and the next call works', async () => {
  const own = make(100);
  own.start();
  await reached(own, 'ready');
  const run = new Call(own, 'forges_a_header', { bytes: 2 ** 31 - 1 });
  expect((await run.ended).error?.code).toBe('replica_crashed');
  expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
  await own.close();
});

test('a function that forges more items than its credit allows ends its process', async () => {
  const own = make(100, { maxOutputBytes: 100_000_000 });
  own.start();
  await reached(own, 'ready');
  expect((await new Call(own, 'forges_items').ended).error?.code).toBe('replica_crashed');
  expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
  await own.close();
});

test('a flood with a slow store delays neither answers nor cancels of other runs, and loses no item', async () => {
  const MIB = 1024 * 1024;
  const own = make(100, { maxOutputBytes: 100 * MIB });
  own.start();
  await reached(own, 'ready');
  const pid = await new Call(own, 'pid').result();
  const flood = new Call(own, 'flood_large', { n: 1_000 });
  flood.running?.pause();
  const sleeper = new Call(own, 'sleeper');
  await sleeper.until(() => sleeper.count === 1);
  await flood.until(() => flood.count * 65_536 >= MIB);
  for (let times = 0; times < 20; times++) expect(await new Call(own, 'add', { a: 1 }).result()).toBe('3');
  sleeper.running?.cancel('cancelled');
  expect((await sleeper.ended).state).toBe('cancelled');
  // The frame that reaches the window is the last frame.
  expect(flood.count * 65_536).toBe(MIB);
  for (let stored = flood.count; flood.ends === 0; stored = flood.count) {
    flood.running?.credit(stored);
    await flood.until(() => flood.count > stored || flood.ends > 0);
  }
  expect(await flood.ended).toMatchObject({ state: 'succeeded', items: 1_000 });
  expect(await new Call(own, 'pid').result()).toBe(pid);
  await own.close();
});

test('a flood with a slow store can be cancelled', async () => {
  const own = make(1, { maxOutputBytes: 100_000_000 });
  own.start();
  await reached(own, 'ready');
  const flood = new Call(own, 'flood_large', { n: 1_000 });
  flood.running?.pause();
  await flood.until(() => flood.count > 0);
  flood.running?.cancel('cancelled');
  expect((await flood.ended).state).toBe('cancelled');
  await own.close();
});

test('a very long line is logged in pieces, in time proportional to its length', async () => {
  // Time proportional to the square of the length would far exceed the time limit.
  const own = make(100, { timeoutMs: 60_000 });
  own.start();
  await reached(own, 'ready');
  const run = new Call(own, 'prints_one_line', { megabytes: 80 });
  expect(await run.ended).toMatchObject({ state: 'succeeded' });
  await own.close();
});

test.each([1, 100])('the trace function of a run sees no later run, with %s runs at a time', async (concurrency) => {
  const own = make(concurrency, { cancelGraceMs: 20_000 });
  own.start();
  await reached(own, 'ready');
  for (let round = 0; round < 5; round++) {
    await new Call(own, 'traces').ended;
    expect(await new Call(own, 'traced').result()).toBe('[false,false]');
  }
  await new Call(own, 'traces_quietly').ended;
  expect(await new Call(own, 'traced_async').result()).toBe('[false,false]');
  await new Call(own, 'traces_async').ended;
  expect(await new Call(own, 'async_value', { x: 1 }).result()).toBe('1');
  await own.close();
});

test('a drained process runs teardown() after its last run, and the output of teardown() is logged', async () => {
  const folder = await emptyFolder();
  const own = make(100, {
    folder: await appOf(`
import os, time
def waits(path):
    yield "waiting"
    while not os.path.exists(path):
        time.sleep(0.01)
    print("the run ends")
def teardown():
    print("torn down")
    open(${JSON.stringify(join(folder, 'torn down'))}, "w").close()
`),
  });
  own.start();
  await reached(own, 'ready');
  const run = new Call(own, 'waits', { path: join(folder, 'enough') });
  await run.until(() => run.count === 1);
  const told = lines.length;
  const drained = own.drain();
  await writeFile(join(folder, 'enough'), '');
  expect((await run.ended).state).toBe('succeeded');
  await drained;
  expect(await readFile(join(folder, 'torn down'), 'utf8')).toBe('');
  expect(lines.slice(told)).toContain('torn down');
});

test.each([
  ['a teardown() that hangs', 'import time\ndef teardown():\n    time.sleep(600)\n'],
  [
    'a thread that hangs',
    'import threading, time\ndef teardown():\n    threading.Thread(target=time.sleep, args=(600,)).start()\n',
  ],
])('a drained process with %s is killed', async (_what, code) => {
  const own = make(100, {
    folder: await appOf(`${code}import os\ndef pid():\n    return os.getpid()\n`),
    teardownMs: 1_000,
  });
  own.start();
  await reached(own, 'ready');
  const pid = Number(await new Call(own, 'pid').result());
  const told = lines.length;
  await own.drain();
  expect(await isRunning(pid)).toBe(false);
  expect(lines.slice(told)).toContainEqual(expect.stringContaining('did not end within 1 s'));
});

test('a stuck function that is alone in its process is killed after the grace, without an earlier signal', async () => {
  const folder = await emptyFolder();
  const own = make(1, { cancelGraceMs: 1_000 });
  own.start();
  await reached(own, 'ready');
  const run = new Call(own, 'notes_signals', { path: join(folder, 'signalled') });
  await run.until(() => run.count === 1);
  run.running?.cancel('cancelled');
  expect((await run.ended).state).toBe('cancelled');
  expect(await readdir(folder)).toEqual([]);
  await own.close();
});

test('a process without free file descriptors is replaced when its runs have ended', async () => {
  const own = make(100);
  own.start();
  await reached(own, 'ready');
  const before = await new Call(own, 'pid').result();
  const folder = await emptyFolder();
  const neighbour = new Call(own, 'step_by_step', { folder, n: 1 });
  await neighbour.until(() => neighbour.count === 1);
  expect((await new Call(own, 'leaks_files').ended).error).toMatchObject({ code: 'function_error', type: 'OSError' });
  expect(await new Call(own, 'pid').result()).not.toBe(before);
  await writeFile(join(folder, '0'), '');
  expect(await neighbour.ended).toMatchObject({ state: 'succeeded', items: 1 });
  await own.close();
});

test('if no thread can be started, the next calls wait for a thread, then run', async () => {
  const held = call('leaves_no_room_for_threads');
  const waiting = call('add', { a: 1 });
  expect((await held.ended).state).toBe('succeeded');
  expect(await waiting.result()).toBe('3');
});

test('a function that ignores the signal of cancels does so only for itself', async () => {
  const own = make(1, { cancelGraceMs: 20_000 });
  own.start();
  await reached(own, 'ready');
  expect((await new Call(own, 'deaf_to_cancels').ended).state).toBe('succeeded');
  const run = new Call(own, 'looper');
  await run.until(() => run.count === 1);
  run.running?.cancel('cancelled');
  expect((await run.ended).state).toBe('cancelled');
  await own.close();
});

test('an endless line of a child process is read at a limited rate', async () => {
  const run = call('child_prints_one_line', { seconds: 1 });
  await run.until(() => run.lines.length > 0);
  expect(await call('add', { a: 1 }).result()).toBe('3');
  const { runTimeMs } = await run.ended;
  // 8 KiB, one line, a millisecond. The remaining content of the pipe is read at the end without a limit.
  expect(run.printed.length).toBeLessThan(runTimeMs + 100);
});

test('a flood of unknown parameters gets a short answer', async () => {
  const params = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`ü${i}`.repeat(50), i]));
  const { error } = await call('nothing', params).ended;
  expect(error?.code).toBe('invalid_input');
  expect(error?.details).toHaveLength(20);
});

test('a file of the app replaces neither a module of Python nor a module of the harness', async () => {
  const folder = await appOf('import frames, process\ndef f():\n    return [frames.mine, process.mine]\n');
  for (const name of ['frames', 'process', 'inspect']) await writeFile(join(folder, `${name}.py`), 'mine = 1\n');
  const own = make(100, { folder });
  own.start();
  await reached(own, 'ready');
  expect(await new Call(own, 'f').result()).toBe('[1,1]');
  await own.close();
});
