// Contract 7: TypeScript of apps: type stripping, and esbuild for files that need more.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { compiledSources } from './compiled-sources.ts';
import type { Runtime } from './runtime.ts';
import { Call, reached } from './testing/calls.ts';
import { Language, resultOf } from './testing/languages.ts';

const language = new Language('Node');
afterEach(() => language.end());

async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await language.emptyFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

async function app(files: Readonly<Record<string, string>>): Promise<Runtime> {
  const folder = await folderOf(files);
  return language.started(100, { folder, file: Object.keys(files)[0] ?? '' });
}

test('Node strips the types of a file that needs nothing else', async () => {
  const files = {
    'main.ts': "import { x } from './x.ts';\nexport const f = (): number => x;",
    'x.ts': 'export const x: number = 1;',
  };
  expect(await compiledSources(await folderOf(files), 'main.ts')).toBeUndefined();
  expect(await resultOf(await app(files), 'f')).toBe(1);
});

test.each([
  ['an enum', { 'main.ts': 'enum Kind { A = "a" }\nexport const f = () => Kind.A;' }],
  [
    'a parameter property',
    { 'main.ts': 'class A { constructor(readonly x: string) {} }\nexport const f = () => new A("a").x;' },
  ],
  [
    'a decorator',
    {
      'main.ts': `function upper(value: () => string, _context: unknown) { return () => value().toUpperCase(); }
class A {
  @upper
  text() { return 'a'; }
}
export const f = () => new A().text().toLowerCase();`,
    },
  ],
  [
    'an old decorator, which tsconfig enables',
    {
      'main.ts': `const kept: string[] = [];
function keep(_target: object, name: string) { kept.push(name); }
class A {
  @keep a = 1;
}
export const f = () => (new A(), kept[0]);`,
      'tsconfig.json': '{ "compilerOptions": { "experimentalDecorators": true, /* a comment */ } }',
    },
  ],
  [
    'paths of tsconfig',
    {
      'main.ts': "import { a } from '@lib/a';\nexport const f = () => a;",
      'src/lib/a.ts': "export const a: string = 'a';",
      'tsconfig.json': '{ "compilerOptions": { "paths": { "@lib/*": ["./src/lib/*"] } } }',
    },
  ],
  [
    'imports without an ending, of a folder, and of .js for .ts',
    {
      'main.ts': "import { a } from './lib';\nimport { b } from './b.js';\nexport const f = () => a + b;",
      'lib/index.ts': "import { empty } from './empty';\nexport const a: string = 'a' + empty;",
      'lib/empty.ts': "export const empty = '';",
      'b.ts': "export const b: string = '';",
    },
  ],
  [
    'JSX',
    {
      'main.tsx': 'export const f = () => <p text="a" />;',
      'tsconfig.json': '{ "compilerOptions": { "jsx": "react-jsx", "jsxImportSource": "own-jsx" } }',
      'node_modules/own-jsx/package.json': '{"name": "own-jsx", "exports": {"./jsx-runtime": "./jsx.js"}}',
      'node_modules/own-jsx/jsx.js': 'exports.jsx = (_type, props) => props.text;',
    },
  ],
  [
    'CommonJS',
    {
      'main.cts':
        'enum Kind { A = "a" }\nimport path = require("node:path");\nexport const f = () => path.basename("/" + Kind.A);',
    },
  ],
])('esbuild compiles %s', async (_what, files) => {
  expect(await resultOf(await app(files), 'f')).toBe('a');
});

test('the stack of a compiled file names the author’s line', async () => {
  const runtime = await app({
    'main.ts': 'enum Kind {\n  A,\n  B,\n}\n\nexport function f() {\n  throw new Error(String(Kind.B));\n}\n',
  });
  const run = new Call(runtime, 'f');
  await run.ended;
  expect(run.printed.join('\n')).toMatch(/main\.ts:7:9/);
});

test('a mistake in TypeScript breaks the app, with its place', async () => {
  const folder = await folderOf({ 'main.ts': "import { a } from './missing';\nexport const f = () => a;" });
  const runtime = language.make(1, { folder, file: 'main.ts' });
  runtime.start();
  await reached(runtime, 'broken');
  expect(runtime.error?.message).toContain('main.ts:1: Could not resolve "./missing"');
});

test('zod converts values, and its schema is announced', async () => {
  const runtime = await language.started(100, { entry: 'typed' });
  const spec = runtime.functions.find(({ name }) => name === 'repeats');
  expect(spec).toMatchObject({
    extra: true,
    parameters: [
      { name: 'text', required: true },
      { name: 'times', required: false, default: 2 },
      { name: 'when', required: false },
    ],
    schema: {
      kind: 'stream',
      summary: 'Repeats a text.',
      parameters: { type: 'object', required: ['text'], properties: { times: { type: 'integer', default: 2 } } },
    },
  });
  const run = new Call(runtime, 'repeats', { text: ' a ' });
  await run.ended;
  expect(run.items).toEqual(['a', 'a']);
  const when = new Call(runtime, 'repeats', { text: 'a', times: 1, when: '2026-01-02' });
  await when.ended;
  expect(when.items).toEqual(['a 2026']);
  expect((await new Call(runtime, 'repeats', { times: 'x' }).ended).error).toMatchObject({
    code: 'invalid_input',
    message: 'wrong parameters for repeats: text (missing)',
    details: [{ loc: ['body', 'text'], msg: 'Field required', type: 'missing' }],
  });
  expect((await new Call(runtime, 'repeats', { text: 'bad', times: 3 }).ended).error).toMatchObject({
    code: 'invalid_input',
    details: [{ loc: ['body', 'text'], msg: 'never bad', type: 'value_error' }],
  });
  expect((await new Call(runtime, 'strict', { a: { b: 1, c: 1 }, d: 1 }).ended).error?.details).toEqual([
    { loc: ['body', 'd'], msg: 'Unexpected parameter', type: 'unexpected' },
  ]);
  expect((await new Call(runtime, 'strict', { a: { b: 1, c: 1 } }).ended).error?.details).toEqual([
    { loc: ['body', 'a', 'c'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' },
  ]);
});

test('a Standard Schema without JSON Schema checks values in the process', async () => {
  const runtime = await language.started(100, { entry: 'typed' });
  expect(runtime.functions.find(({ name }) => name === 'checked')).toMatchObject({
    parameters: [],
    extra: true,
    untyped: 'its schema cannot be converted to JSON Schema',
  });
  expect(await resultOf(runtime, 'checked', { n: 1 })).toEqual({ n: 2 });
  expect((await new Call(runtime, 'checked', { n: 'x' }).ended).error).toMatchObject({
    code: 'invalid_input',
    details: [{ loc: ['body', 'n'], msg: 'no number', type: 'value_error' }],
  });
});

test.each(['zod', 'arktype', 'valibot'])('a schema of %s is announced, and checks and converts values', async (fn) => {
  const runtime = await language.started(100, { entry: 'libraries' });
  expect(runtime.functions.find(({ name }) => name === fn)).toMatchObject({
    extra: false,
    parameters: [
      { name: 'item', required: true },
      { name: 'count', required: false },
      { name: 'note', required: false },
    ],
    schema: {
      kind: 'value',
      parameters: {
        type: 'object',
        required: ['item'],
        properties: { item: { type: 'string' }, count: { type: 'integer' }, note: { type: 'string' } },
        additionalProperties: false,
      },
    },
  });
  expect(await resultOf(runtime, fn, { item: 'a' })).toEqual(['a', 2, null]);
  expect(await resultOf(runtime, fn, { item: 'a', count: 3, note: 'n' })).toEqual(['a', 3, 'n']);
  const refused = async (params: object): Promise<unknown> => {
    const { error } = await new Call(runtime, fn, params).ended;
    return [error?.code, error?.details?.map(({ loc, type }) => [loc[1], type])];
  };
  expect(await refused({})).toEqual(['invalid_input', [['item', 'missing']]]);
  expect(await refused({ item: 'a', other: 1 })).toEqual(['invalid_input', [['other', 'unexpected']]]);
  expect(await refused({ item: '', count: 1 })).toEqual(['invalid_input', [['item', 'value_error']]]);
  expect(await refused({ item: 1, count: 1.5 })).toEqual([
    'invalid_input',
    [
      ['item', 'value_error'],
      ['count', 'value_error'],
    ],
  ]);
});

test.each([
  ['plain_valibot', 'its schema cannot be converted to JSON Schema'],
  ['trimmed_valibot', expect.stringContaining('The "trim" action cannot be converted to JSON Schema')],
])('%s, which cannot become JSON Schema, still checks values in the process', async (fn, untyped) => {
  const runtime = await language.started(100, { entry: 'libraries' });
  expect(runtime.functions.find(({ name }) => name === fn)).toMatchObject({ parameters: [], extra: true, untyped });
  expect((await new Call(runtime, fn, { item: ' a ' }).ended).state).toBe('succeeded');
  expect((await new Call(runtime, fn, { item: 1 }).ended).error).toMatchObject({
    code: 'invalid_input',
    details: [{ loc: ['body', 'item'], type: 'value_error' }],
  });
});

test('the files of a form are checked by the schema and arrive as File', async () => {
  const runtime = await language.started(100, { entry: 'libraries' });
  const form = (type: string): Buffer => {
    const page = (bytes: number) => ({ parameter: 'pages', list: true, name: '', content_type: '', bytes });
    const files = [{ parameter: 'image', name: 'ü.txt', content_type: type, bytes: 5 }, page(0), page(2)];
    return Buffer.from(`\0${JSON.stringify({ parameters: {}, files })}\nfü\r\nab`);
  };
  expect(await new Call(runtime, 'reads_files', form('text/plain')).result()).toBe(
    '[["ü.txt","text/plain","fü\\r\\n"],["","ab"]]',
  );
  expect((await new Call(runtime, 'reads_files', form('image/png')).ended).error).toMatchObject({
    code: 'invalid_input',
    details: [{ loc: ['body', 'image'], type: 'value_error' }],
  });
});
