// harness/PROTOCOL.md: what only apps in Python do: threads, forks, signals, trace functions and text streams.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Runtime } from './runtime.ts';
import { Call } from './testing/calls.ts';
import { isRunning, Language } from './testing/languages.ts';

const language = new Language('Python');
const entry = 'interpreter';
let runtime: Runtime;
const call = (fn: string, params: object = {}): Call => new Call(runtime, fn, params);
const pythonApp = (code: string): Promise<string> => language.appOf({ Python: code, Node: '' });

beforeAll(async () => {
  runtime = await language.started(100, { entry });
});
afterAll(() => language.end());

test('sys.exit is an exception of the function, and other runs continue', async () => {
  const folder = await language.emptyFolder();
  const neighbour = call('step_by_step', { folder, n: 1 });
  await neighbour.until(() => neighbour.count === 1);
  const left = { code: 'function_error', type: 'SystemExit', message: '3' };
  expect((await call('leaves').ended).error).toMatchObject(left);
  // The class of a parameter may leave too, before the function is called.
  expect((await call('never_called', { x: { code: 3 } }).ended).error).toMatchObject(left);
  await writeFile(join(folder, '0'), '');
  expect((await neighbour.ended).state).toBe('succeeded');
});

test('an app may use every method of a text stream on stdout and stderr while it is imported', async () => {
  const folder = await pythonApp(`
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
  const own = await language.started(100, { folder });
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

test('a task that has noticed its cancel early cleans up undisturbed', async () => {
  const run = call('cancelled_twice');
  await run.until(() => run.count > 0);
  run.running?.cancel('cancelled');
  expect((await run.ended).state).toBe('cancelled');
  expect(run.printed).toEqual(['cleaned up']);
});

test('multiprocessing works', async () => {
  expect(await call('pool_of_processes').result()).toBe('[1]');
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
  const folder = await pythonApp(`
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
    const own = await language.started(concurrency, { folder });
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

test.each([1, 100])('the trace function of a run sees no later run, with %s runs at a time', async (concurrency) => {
  const own = await language.started(concurrency, { entry, cancelGraceMs: 20_000 });
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

test('if no thread can be started, the next calls wait for a thread, then run', async () => {
  const held = call('leaves_no_room_for_threads');
  const waiting = call('add', { a: 1 });
  expect((await held.ended).state).toBe('succeeded');
  expect(await waiting.result()).toBe('3');
});

test('a function that ignores the signal of cancels does so only for itself', async () => {
  const own = await language.started(1, { entry, cancelGraceMs: 20_000 });
  expect((await new Call(own, 'deaf_to_cancels').ended).state).toBe('succeeded');
  const run = new Call(own, 'looper');
  await run.until(() => run.count === 1);
  run.running?.cancel('cancelled');
  expect((await run.ended).state).toBe('cancelled');
  await own.close();
});

test('a flood of unknown parameters gets a short answer', async () => {
  const params = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`ü${i}`.repeat(50), i]));
  const { error } = await call('traced', params).ended;
  expect(error?.code).toBe('invalid_input');
  expect(error?.details).toHaveLength(20);
});

test('a drained process with a thread that hangs is killed', async () => {
  const folder = await pythonApp(`
import os, threading, time
def teardown():
    threading.Thread(target=time.sleep, args=(600,)).start()
def pid():
    return os.getpid()
`);
  const own = await language.started(100, { folder, teardownMs: 1_000 });
  const pid = Number(await new Call(own, 'pid').result());
  const before = language.lines.length;
  await own.drain();
  expect(await isRunning(pid)).toBe(false);
  expect(language.lines.slice(before)).toContainEqual(expect.stringContaining('did not end within 1 s'));
});

test('positional-only parameters are described, checked and passed by position', async () => {
  const main = await language.started(100);
  expect(main.functions.find(({ name }) => name === 'positional')?.parameters).toEqual([
    { name: 'a', required: true },
    { name: 'b', required: false, default: 2 },
    { name: 'c', required: false, default: 3 },
    { name: 'd', required: false, default: 4 },
  ]);
  expect(await new Call(main, 'positional', { a: 1 }).result()).toBe('[1,2,3,4]');
  expect(await new Call(main, 'positional', { d: 40, c: 30, b: 20, a: 10 }).result()).toBe('[10,20,30,40]');
  expect((await new Call(main, 'positional', { b: 1 }).ended).error).toMatchObject({
    code: 'invalid_input',
    details: [{ loc: ['body', 'a'], type: 'missing' }],
  });
  const run = new Call(main, 'positional_run', { more: 1 });
  expect(await run.result()).toBe(`["${run.runId}",{"more":1}]`);
  await main.close();
});
