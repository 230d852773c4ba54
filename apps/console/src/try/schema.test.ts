// The form's reading of JSON Schema: which control each schema gets.
import { describe, expect, test } from '@jest/globals';
import { fits, initialOf, type Schema, shapeOf } from './schema.ts';

const kindOf = (schema: Schema, root: Schema = {}): string => shapeOf(schema, root).control.kind;

describe('the control of a schema', () => {
  test.each<[Schema, string]>([
    [{ type: 'string' }, 'text'],
    [{ type: 'string', format: 'date' }, 'date'],
    [{ type: 'string', format: 'binary' }, 'file'],
    [{ type: 'array', items: { type: 'string', format: 'binary' } }, 'files'],
    [{ type: 'integer' }, 'number'],
    [{ type: 'boolean' }, 'boolean'],
    [{ enum: ['a', 2] }, 'choice'],
    [{ const: 'a' }, 'choice'],
    [{ type: 'array', items: { type: 'string' } }, 'list'],
    [{ type: 'array', prefixItems: [{ type: 'string' }], items: false }, 'json'],
    [{ type: 'object', additionalProperties: { type: 'integer' } }, 'json'],
    [{ type: 'object', properties: {} }, 'object'],
    [{ type: 'null' }, 'null'],
    [{}, 'json'],
    [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }, 'union'],
    [{ allOf: [{ type: 'integer' }], description: 'one' }, 'number'],
  ])('%j is %s', (schema, kind) => {
    expect(kindOf(schema)).toBe(kind);
  });
});

test('a union with null is the other branch, and null is allowed', () => {
  for (const schema of [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, { type: ['number', 'null'] }])
    expect(shapeOf(schema, {})).toMatchObject({ control: { kind: 'number' }, nullable: true });
});

test('references are followed, also from a definition to itself, and keywords beside a reference win', () => {
  const root = {
    $defs: {
      Box: {
        type: 'object',
        description: 'A box.',
        properties: { inner: { $ref: '#/$defs/Box' } },
        required: [],
      },
    },
  };
  expect(shapeOf({ $ref: '#/$defs/Box', description: 'Mine.' }, root)).toMatchObject({
    control: { kind: 'object' },
    description: 'Mine.',
  });
  expect(initialOf({ $ref: '#/$defs/Box' }, root)).toEqual({});
  expect(kindOf({ $ref: '#/$defs/constructor' }, root)).toBe('json');
  expect(kindOf({ $ref: 'https://example.com/schema' }, root)).toBe('json');
});

test('descriptions, defaults and limits are in words', () => {
  expect(shapeOf({ type: 'integer', minimum: 1, maximum: 5, default: 3, description: 'How many.' }, {})).toMatchObject({
    description: 'How many.',
    defaultText: '3',
    limits: 'whole number, at least 1, at most 5',
  });
});

test('a form begins with its required objects and lists, and sends nothing for the rest', () => {
  const schema = {
    type: 'object',
    required: ['address', 'items', 'name'],
    properties: {
      name: { type: 'string' },
      size: { type: 'string', default: 'small' },
      items: { type: 'array', items: { type: 'string' } },
      address: { type: 'object', required: ['street'], properties: { street: { type: 'string' } } },
    },
  };
  expect(JSON.parse(JSON.stringify(initialOf(schema, schema)))).toEqual({ address: {}, items: [] });
});

test('the branch of a given value is found by its JSON type', () => {
  expect(fits(1, { type: 'integer' })).toBe(true);
  expect(fits(1.5, { type: 'integer' })).toBe(false);
  expect(fits([], { type: 'object' })).toBe(false);
  expect(fits('a', { enum: ['a'] })).toBe(true);
});
