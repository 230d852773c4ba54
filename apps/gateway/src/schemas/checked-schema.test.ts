import { describe, expect, test } from '@jest/globals';
import { checkedSchema } from './checked-schema.ts';
import { compiledPattern } from './patterns.ts';

const read = (schema: unknown) => checkedSchema(schema)?.schema;

test('keywords that describe are left out, and so are rules that the function’s process judges', () => {
  expect(
    read({
      title: 'T',
      description: 'D',
      default: 1,
      examples: [1],
      type: 'array',
      uniqueItems: true,
      not: { type: 'string' },
      contains: {},
      format: 'email',
      minItems: 1,
    }),
  ).toEqual({ type: 'array', minItems: 1 });
});

test('a rule with a wrong form, or with a number that a double cannot hold, is left out', () => {
  expect(
    read({
      type: 'text',
      minimum: '1',
      maximum: 2 ** 60,
      enum: [2 ** 60],
      const: 2 ** 60,
      minLength: -1,
      multipleOf: 0,
      required: 1,
    }),
  ).toEqual({});
});

test('local references are inlined, with the keywords beside them', () => {
  const $defs = { 'A/b c': { type: 'integer' } };
  expect(read({ properties: { x: { $ref: '#/$defs/A~1b%20c', minimum: 1 } }, $defs })).toEqual({
    properties: { x: { minimum: 1, allOf: [{ type: 'integer' }] } },
  });
});

test('a schema that contains itself is read to its first level', () => {
  const Node = { type: 'object', properties: { next: { anyOf: [{ $ref: '#/$defs/Node' }, { type: 'null' }] } } };
  const inner = { type: 'object', properties: { next: { anyOf: [{}, { type: 'null' }] } } };
  expect(read({ properties: { x: { $ref: '#/$defs/Node' } }, $defs: { Node } })).toEqual({
    properties: { x: { allOf: [inner] } },
  });
  expect(read({ $ref: '#' })).toEqual({ allOf: [{}] });
});

test.each([
  [
    'references that grow exponentially',
    Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => [
        `D${at}`,
        { prefixItems: [{ $ref: `#/$defs/D${at + 1}` }, { $ref: `#/$defs/D${at + 1}` }] },
      ]),
    ),
  ],
  [
    'a long chain of references',
    Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`D${at}`, { $ref: `#/$defs/D${at + 1}` }])),
  ],
])('%s are not read', (_, $defs) => {
  expect(
    checkedSchema({ $ref: '#/$defs/D0', $defs: { ...$defs, [`D${Object.keys($defs).length}`]: {} } }),
  ).toBeUndefined();
});

test('`additionalProperties` is not read beside patterns of names', () => {
  expect(read({ additionalProperties: false, patternProperties: { '^x-': {} } })).toEqual({});
});

test('the cost is the most steps for one value: branches add up, and other members do not', () => {
  const of = (schema: unknown): number => checkedSchema(schema)?.cost ?? 0;
  const text = { type: 'string' };
  expect(of({ properties: { a: text } })).toBe(of({ properties: { a: text, b: text, c: text } }));
  expect(of({ anyOf: [text, text] })).toBeGreaterThan(of({ anyOf: [text] }));
  expect(of({ pattern: '^[a-z]{100}$' })).toBeGreaterThan(100);
});

describe('patterns', () => {
  test.each([
    ['^[a-z]+$', 'abc', true],
    ['^[a-z]+$', 'abc1', false],
    ['b', 'abc', true],
    ['^a$', 'a\n', true],
    ['^\\d$', '٣', true],
    ['^\\d$', 'x', false],
  ])('%j and %j: %s', (pattern, text, expected) => {
    expect(compiledPattern(pattern)?.test(text)).toBe(expected);
  });

  test.each([
    '^(?!a)b',
    '(a)\\1',
    '(?<=a)b',
    '[a&&b]',
    '\\Aa\\Z',
    'a{,3}',
    '(',
    'a'.repeat(513),
    '(a{30}){30}(b{30}){30}',
    '[a-z]{1000}'.repeat(3),
  ])('%j is judged by the function’s process', (pattern) => {
    expect(compiledPattern(pattern)).toBeUndefined();
  });

  test('a pattern that would take exponential time elsewhere is answered', () => {
    expect(compiledPattern('^(a+)+$')?.test(`${'a'.repeat(50_000)}!`)).toBe(false);
  });
});

test('patterns beyond the total size, and long unions and tuples, are left to the function’s process', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [`p${at}`, { pattern: `^[a-z]{1,${100 + at}}$` }]),
  );
  const found = Object.values((read({ properties }) as { properties: object }).properties);
  expect(found[0]).toEqual({ pattern: '^[a-z]{1,100}$' });
  expect(found.at(-1)).toEqual({});
  const members = Array.from({ length: 65 }, () => ({ type: 'string' }));
  expect(read({ anyOf: members, allOf: members, prefixItems: members, items: { type: 'integer' } })).toEqual({});
});
