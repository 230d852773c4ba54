// Contract 1, "Parameters and types": the types of TypeScript functions, as the gateway and the documents receive them.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FunctionSpec } from '@inference-proxy/contracts';
import { afterAll, expect, test } from '@jest/globals';
import { typesOf } from './app-types.ts';
import type { Runtime } from './runtime.ts';
import { Call } from './testing/calls.ts';
import { Language } from './testing/languages.ts';

const language = new Language('Node');
afterAll(() => language.end());

async function app(files: Readonly<Record<string, string>>): Promise<Runtime> {
  const folder = await language.emptyFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return language.started(100, { folder });
}

const named = ({ functions }: Runtime, name: string): FunctionSpec | undefined =>
  functions.find((one) => one.name === name);

const SHAPES = `export interface Point {
  /** Distance to the right. */
  x: number;
  y: number;
}
export type Tree<T> = { value: T; children?: Tree<T>[] };
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export const enum Color { Red = 'red', Blue = 'blue' }
`;

const MAIN = `import type { Color, Json, Point, Tree } from './shapes.ts';

/**
 * Adds two numbers.
 *
 * The sum is exact.
 */
export function add({ a, b = 2, mode = 'fast' }: {
  /** The first number. */
  a: number;
  b?: number;
  mode?: 'fast' | 'slow';
}) {
  return { sum: a + b, at: new Date(0) };
}

export async function* count({ n = 3 }: { n?: number }) {
  for (let i = 0; i < n; i++) yield \`Number \${i}\`;
}

export const draw = async (_given: {
  points: readonly Point[];
  tree: Tree<string>;
  color: Color | null;
  pair: [number, string?];
  bag: Record<string, boolean>;
  json: Json;
  when: Date;
  big: bigint;
  mixed: 1 | 'one' | true | false;
  part: Partial<Pick<Point, 'x'>> & { id: string };
}): Promise<Map<string, number>> => new Map();

export const either = (given: { kind: 'a'; a: number } | { kind: 'b'; b: string }) => given.kind;
export const open = (given: Record<string, number>) => given;
export const typed: (given: Point) => void = () => {};
export function* generic<T extends { id: string }>(given: T) { yield given; }
export const page = async (_given: { url: string }) => new Response('x');
export const none = () => 1;

export const untyped = ({ a = null }) => a;
export const anything = (given: any) => given;
export const rest = (...given: unknown[]) => given;
export function overloaded(given: { a: string }): string;
export function overloaded(given: { a: number }): number;
export function overloaded(given: { a: string | number }) { return given.a; }
export const missing = (given: import('./nowhere.ts').Nothing) => given;

export const declared = ({ a }: { a: number }) => a;
declared.schema = { type: 'object', properties: { a: { type: 'string' } } };
`;

const started = app({ 'main.ts': MAIN, 'shapes.ts': SHAPES });
const string = { type: 'string' };
const number = { type: 'number' };
const object = (properties: object, ...required: string[]): object => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

test('a function has the types, defaults and descriptions of its source', async () => {
  expect(named(await started, 'add')).toEqual({
    name: 'add',
    doc: 'Adds two numbers.',
    parameters: [
      { name: 'a', required: true },
      { name: 'b', required: false, default: 2 },
      { name: 'mode', required: false, default: 'fast' },
    ],
    extra: false,
    schema: {
      kind: 'value',
      summary: 'Adds two numbers.',
      description: 'The sum is exact.',
      parameters: {
        type: 'object',
        properties: {
          a: { ...number, description: 'The first number.' },
          b: { ...number, default: 2 },
          mode: { ...string, enum: ['fast', 'slow'], default: 'fast' },
        },
        required: ['a'],
        additionalProperties: false,
      },
      returns: object({ sum: number, at: { ...string, format: 'date-time' } }, 'sum', 'at'),
    },
  });
});

test('interfaces, aliases, unions, enums, generics, tuples and imported types have schemas', async () => {
  const { parameters, returns } = named(await started, 'draw')?.schema ?? {};
  expect(returns).toEqual({ type: 'object' });
  expect(parameters?.properties).toEqual({
    points: { type: 'array', items: { $ref: '#/$defs/Point' } },
    tree: { $ref: '#/$defs/Tree' },
    color: { anyOf: [{ type: 'null' }, { ...string, enum: ['red', 'blue'] }] },
    pair: { type: 'array', prefixItems: [number, string], items: false, minItems: 1 },
    bag: { type: 'object', properties: {}, additionalProperties: { type: 'boolean' } },
    json: { $ref: '#/$defs/Json' },
    when: {}, // no JSON value is a Date
    big: { type: 'integer' },
    mixed: { anyOf: [{ type: 'boolean' }, { enum: [1, 'one'] }] },
    part: object({ x: { ...number, description: 'Distance to the right.' }, id: string }, 'id'),
  });
  expect(parameters?.$defs).toMatchObject({
    Point: object({ x: { ...number, description: 'Distance to the right.' }, y: number }, 'x', 'y'),
    Tree: object({ value: string, children: { type: 'array', items: { $ref: '#/$defs/Tree' } } }, 'value'),
    Json: { anyOf: expect.arrayContaining([{ type: 'array', items: { $ref: '#/$defs/Json' } }]) },
  });
});

test('streams have the type of an item, and a union of objects has its alternatives', async () => {
  const runtime = await started;
  expect(named(runtime, 'count')?.schema).toMatchObject({ kind: 'stream', item: string });
  expect(named(runtime, 'generic')?.schema).toMatchObject({ kind: 'stream', item: object({ id: string }, 'id') });
  expect(named(runtime, 'either')?.schema?.parameters).toMatchObject({
    properties: { kind: {}, a: {}, b: {} },
    additionalProperties: false,
    anyOf: [object({ kind: { const: 'a' }, a: number }, 'kind', 'a'), { properties: { kind: { const: 'b' } } }],
  });
  expect(named(runtime, 'open')).toMatchObject({
    extra: true,
    schema: { parameters: { additionalProperties: number } },
  });
  expect(named(runtime, 'typed')?.parameters.map(({ name }) => name)).toEqual(['x', 'y']);
  expect(named(runtime, 'page')?.schema).not.toHaveProperty('returns');
  expect(named(runtime, 'none')?.schema?.parameters).toMatchObject({ properties: {}, additionalProperties: false });
});

test.each([
  ['untyped', 'its parameter has no type'],
  ['anything', 'the type of its parameter is not an object: any'],
  ['rest', 'it has a rest parameter'],
  ['overloaded', 'it has overloads'],
  ['missing', 'the type of its parameter is not an object: any'],
])('%s is untyped, with the reason', async (name, untyped) => {
  expect(named(await started, name)).toEqual({ name, parameters: [], extra: true, untyped });
});

test('a declared schema takes precedence, and the process checks the names of typed parameters', async () => {
  const runtime = await started;
  expect(named(runtime, 'declared')?.schema?.parameters.properties).toEqual({ a: string });
  expect((await new Call(runtime, 'add', { c: 1 }).ended).error).toMatchObject({
    code: 'invalid_input',
    details: [
      { loc: ['body', 'a'], type: 'missing' },
      { loc: ['body', 'c'], type: 'unexpected' },
    ],
  });
  expect(await new Call(runtime, 'untyped', { a: 1, b: 2 }).result()).toBe('1');
});

test('an app whose types cannot be read starts, and the reason is known', async () => {
  const runtime = await app({
    'main.ts': "import type { Wide } from './wide.ts';\nexport const f = (given: Wide) => Object.keys(given).length;",
    'wide.ts': `export interface Wide { ${Array.from({ length: 6_000 }, (_, i) => `p${i}?: ${i};`).join(' ')} }`,
  });
  expect(named(runtime, 'f')?.untyped).toBe('its types are too large');
  expect(await new Call(runtime, 'f', { p1: 1 }).result()).toBe('1');
  expect(await typesOf(await language.emptyFolder(), 'main.ts', 'v1')).toEqual({
    untyped: 'its types cannot be read: main.ts cannot be read',
  });
  expect(await typesOf(await language.emptyFolder(), 'main.mjs', 'v1')).toBeUndefined();
});
