// Contract 1, "Parameters and types": the worker checks and bounds the schemas of a process.
import { expect, test } from '@jest/globals';
import { withBoundedSchemas } from './function-schemas.ts';

const fn = (name: string, schema?: unknown) => ({ name, parameters: [], extra: false, schema });
const small = { kind: 'value', parameters: { type: 'object', properties: {}, required: [] } };

test('a schema is kept, and a function without a schema stays as it is', () => {
  const item = { type: 'string' };
  expect(withBoundedSchemas([fn('a', { ...small, kind: 'stream', item, forged: 1 }), fn('b')])).toEqual([
    { name: 'a', parameters: [], extra: false, schema: { ...small, kind: 'stream', item } },
    { name: 'b', parameters: [], extra: false },
  ]);
});

test.each([
  ['is no object', 'text'],
  ['has no parameters', { kind: 'value' }],
  ['has an unknown kind', { ...small, kind: 'x' }],
  ['has a list of parameters', { kind: 'value', parameters: [] }],
])('a schema that %s makes the function untyped', (_what, schema) => {
  const [found] = withBoundedSchemas([fn('a', schema)]);
  expect(found).toEqual({ name: 'a', parameters: [], extra: false, untyped: 'its schema is malformed' });
});

test('the schemas of an app together have a bound', () => {
  const large = { ...small, parameters: { ...small.parameters, title: 'x'.repeat(200 * 1024) } };
  const found = withBoundedSchemas([fn('a', large), fn('b', large), fn('c', small)]);
  expect(found.map(({ schema }) => schema !== undefined)).toEqual([true, false, true]);
  expect(found[1]?.untyped).toContain('at most 262144 bytes');
});

test('a schema that is nested too deeply makes the function untyped', () => {
  let deep: Record<string, unknown> = {};
  for (let i = 0; i < 100_000; i++) deep = { items: deep };
  expect(withBoundedSchemas([fn('a', { kind: 'value', parameters: deep })])[0]?.untyped).toContain('nested');
});
