// Contract 1 and 7: what only apps in JavaScript do: exports, kinds of streams, values, TypeScript, and the ends of their processes.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Runtime } from './runtime.ts';
import { Call } from './testing/calls.ts';
import { Language, type More, resultOf } from './testing/languages.ts';

const language = new Language('Node');
afterEach(() => language.end());

/** Writes an app and starts it. `files` has the file's text by its path. */
async function app(
  files: Readonly<Record<string, string>>,
  more: More & { concurrency?: number } = {},
): Promise<Runtime> {
  const folder = await language.emptyFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const file = Object.keys(files)[0] ?? '';
  return language.started(more.concurrency ?? 100, { ...more, folder, file });
}

const names = (runtime: Runtime): string[] => runtime.functions.map(({ name }) => name);

describe('exports', () => {
  test('the functions of a default export are its properties', async () => {
    const runtime = await app({
      'main.mjs': 'export default { base: 2, twice({ x }) { return this.base * x; }, Kept: class {}, n: 1 };',
    });
    expect(names(runtime)).toEqual(['twice']);
    expect(await resultOf(runtime, 'twice', { x: 4 })).toBe(8);
  });

  test('a default export that is a function is called run', async () => {
    const runtime = await app({ 'main.mjs': 'export default async ({ x }) => x;' });
    expect(await resultOf(runtime, 'run', { x: 1 })).toBe(1);
  });

  test.each([
    ['main.cjs', 'exports.one = () => 1; exports.setup = () => { exports.two = () => 2; };', ['one']],
    ['main.js', 'module.exports = { one: () => 1, _hidden: () => 1 };', ['one']],
    ['main.js', 'module.exports = () => require("node:path").basename(__filename);', ['run']],
    ['main.js', 'export const one = () => 1;', ['one']],
    ['main.ts', 'const one = (): number => 1;\nmodule.exports = { one };', ['one']],
  ])('%s with %s has the functions %j', async (file, code, expected) => {
    expect(names(await app({ [file]: code }))).toEqual(expected);
  });

  test('the packages in the folder’s node_modules are used', async () => {
    const runtime = await app({
      'main.ts': "import { six } from 'own-package';\nexport const f = (): number => six;",
      'node_modules/own-package/package.json': '{"name": "own-package", "type": "module", "exports": "./index.js"}',
      'node_modules/own-package/index.js': 'export const six = 6;',
    });
    expect(await resultOf(runtime, 'f')).toBe(6);
  });
});

describe('streams', () => {
  const CODE = `
import { Readable } from 'node:stream';
export const web = () => new ReadableStream({ start(c) { c.enqueue('a'); c.enqueue({ b: 1 }); c.close(); } });
export const bytes = () => new Blob(['grö', 'ße']).stream();
export const node = () => Readable.from(['a', 'b']);
export const iterable = () => ({ *[Symbol.iterator]() { yield 1; yield 2; } });
export const promises = () => ({ *[Symbol.iterator]() { yield Promise.resolve(1); yield 2; } });
export const json = () => Response.json({ a: 1 }, { status: 201 });
export const text = () => new Response('hello', { status: 404 });
export const nothing = () => new Response(null, { status: 204 });
const typed = (type, body) => new Response(body, { headers: { 'content-type': type } });
export const image = () => typed('image/png', Buffer.alloc(150_000, '\\xff\\n', 'latin1'));
export const latin = () => typed('text/html; charset=latin1', Buffer.from([0xe4]));
export const large_json = () => Response.json('x'.repeat(200_000));
export const large_image = () => typed('image/png', Buffer.alloc(200_001));
export const network_error = () => Response.error();
export const wrong_type = () => typed('a"b', 'x');
export const wrong_text = () => typed('text/plain', Buffer.from([0xe4]));
export const broken = () => typed('image/png', new ReadableStream({ pull() { throw new Error('no more'); } }));
const endless = () => new ReadableStream({ pull() { console.log('reading'); return new Promise(() => {}); }, cancel() { console.log('cancelled'); } });
export const endless_json = () => typed('application/json', endless());
export const endless_image = () => typed('image/png', endless());
let read = 0;
export const counted = () => typed('image/png', new ReadableStream({ pull(c) { read++; c.enqueue(Buffer.alloc(65_536)); } }));
export const count = () => read;
export const events = () => new Response('event: a\\ndata: 1\\n\\ndata: 2\\n\\n', { headers: { 'content-type': 'text/event-stream' } });
export const lines = () => new Response('{"a":1}\\n{"a":2}', { headers: { 'content-type': 'application/x-ndjson' } });
const chunks = (...parts) => new ReadableStream({ start(c) { for (const part of parts) c.enqueue(Buffer.from(part, 'latin1')); c.close(); } });
export const split_events = () => new Response(chunks('data: 1\\r', '\\n\\r', '\\ndata: 2\\r\\n\\r\\n'), { headers: { 'content-type': 'text/event-stream' } });
export const cut_event = () => new Response(chunks('data: \\xc3'), { headers: { 'content-type': 'text/event-stream' } });
export const cut_bytes = () => chunks('a', '\\xc3');
export const hangs = (_p, { signal }) => new ReadableStream({
  start(c) { c.enqueue('first'); },
  cancel() { console.log('cancelled', signal.aborted); },
});
export const deaf = () => ({
  [Symbol.asyncIterator]() { return this; },
  next() { return this.begun ? new Promise(() => {}) : ((this.begun = true), Promise.resolve({ done: false, value: 'first' })); },
  return() { console.log('returned'); return { done: true }; },
});`;

  test('every kind of stream is sent item by item', async () => {
    const runtime = await app({ 'main.mjs': CODE });
    const items = async (fn: string): Promise<string[]> => {
      const run = new Call(runtime, fn);
      expect(await run.ended).toMatchObject({ state: 'succeeded', streamed: true });
      return run.items;
    };
    expect(await items('web')).toEqual(['a', '{"b":1}']);
    expect((await items('bytes')).join('')).toBe('größe');
    expect(await items('node')).toEqual(['a', 'b']);
    expect(await items('iterable')).toEqual(['1', '2']);
    expect(await items('promises')).toEqual(['1', '2']);
    expect(await items('events')).toEqual(['event: a\ndata: 1\n\n', 'data: 2\n\n']);
    expect(await items('split_events')).toEqual(['data: 1\n\n', 'data: 2\n\n']);
    expect(await items('lines')).toEqual(['{"a":1}', '{"a":2}']);
  });

  test.each([
    ['cut_event', 'unserializable_output'],
    ['cut_bytes', 'function_error'],
  ])('a stream of %s, which ends within a character, fails', async (fn, code) => {
    const runtime = await app({ 'main.mjs': CODE });
    expect(await new Call(runtime, fn).ended).toMatchObject({ state: 'failed', error: { code } });
  });

  test('a Response sets the status, the content type and the body', async () => {
    const runtime = await app({ 'main.mjs': CODE });
    const head = (form: string, status: number, type?: string): object => ({
      state: 'succeeded',
      statusCode: status,
      head: { form, status, headers: type === undefined ? [] : [['content-type', type]] },
    });
    expect(await new Call(runtime, 'json').ended).toMatchObject({
      ...head('json', 201, 'application/json'),
      result: Buffer.from('{"a":1}'),
    });
    const text = new Call(runtime, 'text');
    expect(await text.ended).toMatchObject(head('chunks', 404, 'text/plain;charset=UTF-8'));
    expect(text.items).toEqual(['hello']);
    expect(await new Call(runtime, 'nothing').ended).toMatchObject({ ...head('binary', 204), result: Buffer.alloc(0) });
    const image = new Call(runtime, 'image');
    expect(await image.ended).toMatchObject({ ...head('bytes', 200, 'image/png'), items: 3 });
    expect(image.head).toEqual({ status: 200, headers: [['content-type', 'image/png']], form: 'bytes' });
    expect(Buffer.concat(image.frames.map(({ blob }) => blob))).toEqual(Buffer.alloc(150_000, '\xff\n', 'latin1'));
    expect(image.frames.map(({ kind }) => kind)).toEqual(['b', 'b', 'b']);
    const latin = await new Call(runtime, 'latin').ended;
    expect(latin).toMatchObject({ ...head('text', 200, 'text/html; charset=latin1'), result: Buffer.from([0xe4]) });
  });

  test.each([
    ['large_json', 'output_too_large', 'the body of the Response is over 200000 bytes'],
    ['large_image', 'output_too_large', "the run's output is over 200000 bytes"],
    ['network_error', 'function_error', 'the function returned Response.error(), which has no status'],
    ['wrong_type', 'function_error', 'the content type of the Response is not a media type: a"b'],
    [
      'wrong_text',
      'unserializable_output',
      'the body of the Response is not UTF-8: name its charset in the content type',
    ],
    ['broken', 'function_error', 'no more'],
  ])('%s is an error of the run', async (fn, code, message) => {
    const runtime = await app({ 'main.mjs': CODE });
    expect(await new Call(runtime, fn).ended).toMatchObject({ state: 'failed', error: { code, message } });
    expect((await new Call(runtime, 'json').ended).state).toBe('succeeded');
  });

  test('a failure before the first piece of a body has no head', async () => {
    const runtime = await app({ 'main.mjs': CODE });
    const run = new Call(runtime, 'broken');
    expect(await run.ended).not.toHaveProperty('head');
    expect(run.head).toBeUndefined();
  });

  test.each(['endless_json', 'endless_image'])('a cancel ends the body of %s', async (fn) => {
    const runtime = await app({ 'main.mjs': CODE });
    const run = new Call(runtime, fn);
    await run.until(() => run.printed.includes('reading'));
    run.running?.cancel('cancelled');
    expect((await run.ended).state).toBe('cancelled');
    expect(run.printed).toContain('cancelled');
  });

  test('a body whose reader stalls is not read further', async () => {
    const runtime = await app({ 'main.mjs': CODE });
    const run = new Call(runtime, 'counted', {}, true);
    await run.until(() => run.count >= 16);
    for (let times = 0; times < 20; times++) await new Call(runtime, 'json').ended;
    expect(run.count).toBe(16); // 1 MiB
    expect(Number((await new Call(runtime, 'count').ended).result)).toBeLessThan(20);
    run.running?.cancel('cancelled');
    await run.ended;
  });

  test('a generator that waits for credit continues when a quarter of its window is free', async () => {
    const runtime = await app({
      'main.mjs': 'export function* flood() { for (;;) yield 1; }\nexport const answers = () => true;',
    });
    const run = new Call(runtime, 'flood', {}, true);
    await run.until(() => run.count === 256);
    for (const number of [1, 2, 3, 4]) run.running?.credit(number);
    await run.until(() => run.count === 4_100);
    run.running?.credit(1_027);
    await new Call(runtime, 'answers').result(); // the process has read the credit
    expect(run.count).toBe(4_100);
    run.running?.credit(1_028);
    await run.until(() => run.count === 5_124);
    run.running?.cancel('cancelled');
    expect((await run.ended).state).toBe('cancelled');
  });

  test.each([
    ['hangs', 'cancelled true'],
    ['deaf', 'returned'],
  ])('a cancel ends %s, whose next item never comes', async (fn, printed) => {
    const runtime = await app({ 'main.mjs': CODE });
    const run = new Call(runtime, fn);
    await run.until(() => run.count === 1);
    run.running?.cancel('cancelled');
    expect(await run.ended).toMatchObject({ state: 'cancelled', items: 1 });
    expect(run.printed).toEqual([printed]);
  });
});

describe('values', () => {
  test('values that are not plain JSON are encoded as in Python', async () => {
    const runtime = await app({
      'main.mjs': `export const f = () => ({
  date: new Date(0), map: new Map([[1, new Set(['a'])]]), big: 12345678901234567890n, bytes: Buffer.from('größe'),
  floats: new Float32Array([0.5, 1]), own: new (class { toJSON() { return { kind: 'own' }; } })(), none: undefined, list: [undefined],
});`,
    });
    expect((await new Call(runtime, 'f').ended).result?.toString()).toBe(
      '{"date":"1970-01-01T00:00:00.000Z","map":{"1":["a"]},"big":12345678901234567890,"bytes":"größe","floats":[0.5,1],"own":{"kind":"own"},"list":[null]}',
    );
  });

  test.each([
    ['{ a: [1, { b: NaN }] }', 'the output (Object) is not JSON: .a[1].b is NaN'],
    ['[Promise.resolve(1)]', '[0] is a Promise'],
    ['new Error("x")', 'a Error'],
    ['() => 1', 'a function'],
    ['(() => { const a = {}; a.a = a; return a; })()', 'nested too deeply'],
    ['{ b: new Uint8Array([255]) }', '.b is bytes that are not UTF-8 text: give base64 text instead'],
  ])('%s is refused with its place', async (value, message) => {
    const runtime = await app({ 'main.mjs': `export const f = () => (${value});` });
    const { error } = await new Call(runtime, 'f').ended;
    expect(error?.code).toBe('unserializable_output');
    expect(error?.message).toContain(message);
  });

  test('a function receives the run’s id, signal, trace and log', async () => {
    const runtime = await app({
      'main.mjs':
        'export const f = (_p, { signal, runId, traceparent, log }) => { log("a %s", 1); return [signal.aborted, runId, traceparent]; };',
    });
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const run = new Call(runtime, 'f', {}, false, traceparent);
    expect(await run.result()).toBe(JSON.stringify([false, run.runId, traceparent]));
    expect(run.printed).toEqual(['a 1']);
  });

  test('the spans of a function belong to the trace of its own call', async () => {
    // The part of OpenTelemetry's API for JavaScript that tracing in an app uses.
    const runtime = await app({
      'main.mjs': `
import { AsyncLocalStorage } from 'node:async_hooks';
const current = new AsyncLocalStorage();
globalThis[Symbol.for('opentelemetry.js.api.1')] = {
  context: { active: () => undefined, with: (context, fn) => current.run(context, fn) },
  propagation: { extract: (_context, carrier, getter) => {
    const traceparent = getter.get(carrier, 'traceparent');
    if (traceparent.endsWith('-00')) throw new Error('not this one');
    return traceparent;
  } },
};
export const plain = () => current.getStore() ?? null;
export async function* streamed() { await null; yield current.getStore(); }`,
    });
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    expect(await new Call(runtime, 'plain', {}, false, traceparent).result()).toBe(JSON.stringify(traceparent));
    const streamed = new Call(runtime, 'streamed', {}, false, traceparent);
    await streamed.ended;
    expect(streamed.items).toEqual([traceparent]);
    expect(await new Call(runtime, 'plain').result()).toBe('null');
    expect(await new Call(runtime, 'plain', {}, false, traceparent.replace(/01$/, '00')).result()).toBe('null');
  });
});
