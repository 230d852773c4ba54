// Contract 1, "Parameters and types": which parameters the gateway refuses, and with which details.
import type { ErrorDetail, FunctionSpec, JsonSchema } from '@inference-proxy/contracts';
import { describe, expect, test } from '@jest/globals';
import { Validators } from './validators.ts';

const unread: string[] = [];
const validators = new Validators({ onUnread: (name) => void unread.push(name) });

const fn = (parameters: JsonSchema, name = 'f'): FunctionSpec => ({
  name,
  parameters: [],
  extra: false,
  schema: { kind: 'value', parameters },
});

/** Returns the schema of a function with one optional parameter, `x`. */
const ofX = (x: unknown, more: JsonSchema = {}): FunctionSpec =>
  fn({ type: 'object', properties: { x }, required: [], additionalProperties: false, ...more });

function refusal(spec: FunctionSpec, params: object, bytes = JSON.stringify(params).length) {
  return validators.violation(spec, params, bytes);
}

const details = async (spec: FunctionSpec, params: object, bytes?: number): Promise<readonly ErrorDetail[]> =>
  (await refusal(spec, params, bytes))?.details ?? [];

const TYPED = fn(
  {
    type: 'object',
    properties: {
      image: { type: 'string', description: 'URL of the image.' },
      width: { type: 'integer', minimum: 1, default: 640 },
      mode: { enum: ['fit', 'fill'], type: 'string', default: 'fit' },
      when: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }], default: null },
    },
    required: ['image'],
    additionalProperties: false,
  },
  'resize',
);

test('all violations of a call are listed with their places', async () => {
  expect(await refusal(TYPED, { width: 0, mode: 'crop', when: 'now', size: 1 })).toMatchObject({
    code: 'invalid_input',
    message:
      'wrong parameters for resize: image (missing), size (unexpected), width (greater_than_equal), mode (enum), when (datetime_parsing)',
    details: [
      { loc: ['body', 'image'], msg: 'Field required', type: 'missing' },
      { loc: ['body', 'size'], msg: 'Unexpected parameter', type: 'unexpected' },
      { loc: ['body', 'width'], msg: 'Input should be greater than or equal to 1', type: 'greater_than_equal' },
      { loc: ['body', 'mode'], msg: 'Input should be "fit" or "fill"', type: 'enum' },
      { loc: ['body', 'when'], msg: 'Input should be a valid datetime', type: 'datetime_parsing' },
    ],
  });
});

test('valid parameters are accepted, and no default is filled in', async () => {
  const params = { image: 'a.png', width: 640.0, when: null };
  expect(await refusal(TYPED, params)).toBeUndefined();
  expect(params).toEqual({ image: 'a.png', width: 640, when: null });
});

test('a function without a schema accepts every value', async () => {
  expect(validators.violation({ name: 'f', parameters: [], extra: false }, { any: 1 }, 9)).toBeUndefined();
});

describe('the details of one value', () => {
  const CASES: readonly (readonly [schema: unknown, value: unknown, type: string, msg: string])[] = [
    [{ type: 'string' }, 1, 'string_type', 'Input should be a valid string'],
    [{ type: 'integer' }, '1', 'int_type', 'Input should be a valid integer'],
    [{ type: 'integer' }, true, 'int_type', 'Input should be a valid integer'],
    [
      { type: 'integer' },
      1.5,
      'int_from_float',
      'Input should be a valid integer, got a number with a fractional part',
    ],
    [{ type: 'number' }, '1', 'float_type', 'Input should be a valid number'],
    [{ type: 'number' }, Infinity, 'float_type', 'Input should be a valid number'],
    [{ type: 'boolean' }, 0, 'bool_type', 'Input should be a valid boolean'],
    [{ type: 'array' }, {}, 'list_type', 'Input should be a valid list'],
    [{ type: 'object' }, [], 'dict_type', 'Input should be a valid object'],
    [{ type: 'null' }, 0, 'none_required', 'Input should be null'],
    [{ type: ['string', 'integer'] }, null, 'union_type', 'Input should match one of the allowed types'],
    [{ enum: ['a', 'b', 3] }, 'c', 'enum', 'Input should be "a", "b" or 3'],
    [{ enum: ['a'], type: 'string' }, 5, 'enum', 'Input should be "a"'],
    [{ const: true }, 1, 'enum', 'Input should be true'],
    [{ exclusiveMinimum: 1 }, 1, 'greater_than', 'Input should be greater than 1'],
    [{ maximum: 1 }, 2, 'less_than_equal', 'Input should be less than or equal to 1'],
    [{ exclusiveMaximum: 1 }, 1, 'less_than', 'Input should be less than 1'],
    [{ multipleOf: 5 }, 7, 'multiple_of', 'Input should be a multiple of 5'],
    [{ minLength: 3 }, 'ab', 'string_too_short', 'String should have at least 3 characters'],
    [{ maxLength: 1 }, 'ab', 'string_too_long', 'String should have at most 1 character'],
    [{ pattern: '^a+$' }, 'b', 'string_pattern_mismatch', "String should match pattern '^a+$'"],
    [{ minItems: 2 }, [1], 'too_short', 'Input should have at least 2 items'],
    [{ maxItems: 1 }, [1, 2], 'too_long', 'Input should have at most 1 item'],
    [{ minProperties: 1 }, {}, 'too_short', 'Input should have at least 1 item'],
    [{ format: 'date' }, 'x', 'date_parsing', 'Input should be a valid date'],
    [{ format: 'time' }, 'x', 'time_parsing', 'Input should be a valid time'],
    [{ format: 'duration' }, 'x', 'time_delta_parsing', 'Input should be a valid duration'],
    [{ format: 'uuid' }, 'x', 'uuid_parsing', 'Input should be a valid UUID'],
    [{ format: 'decimal' }, 'x', 'decimal_parsing', 'Input should be a valid decimal'],
    [false, 1, 'value_error', 'boolean schema is false'],
  ];
  test.each(CASES)('%j refuses %j as %s', async (schema, value, type, msg) => {
    expect(await details(ofX(schema), { x: value })).toEqual([{ loc: ['body', 'x'], msg, type }]);
  });
});

test('places inside values have names and indexes', async () => {
  const item = {
    type: 'object',
    properties: { 'a/b~': { type: 'integer' } },
    required: ['id'],
    additionalProperties: false,
  };
  expect(await details(ofX({ type: 'array', items: item }), { x: [{ id: 1 }, { 'a/b~': '1', more: 2 }] })).toEqual([
    { loc: ['body', 'x', 0, 'id'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' },
    { loc: ['body', 'x', 1, 'id'], msg: 'Field required', type: 'missing' },
    { loc: ['body', 'x', 1, 'more'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' },
    { loc: ['body', 'x', 1, 'a/b~'], msg: 'Input should be a valid integer', type: 'int_type' },
  ]);
  expect(await details(ofX({ additionalProperties: { type: 'string' } }), { x: { 0: 1 } })).toMatchObject([
    { loc: ['body', 'x', '0'] },
  ]);
});

describe('unions', () => {
  const INT = { type: 'integer', minimum: 5 };
  const MODEL = { type: 'object', properties: { a: INT }, required: ['a'] };
  test.each([
    ['the branch beside null counts', { anyOf: [INT, { type: 'null' }] }, 'x', [['int_type', []]]],
    ['the branch of the value’s type counts', { anyOf: [INT, { type: 'string' }] }, 1, [['greater_than_equal', []]]],
    ['no type fits', { anyOf: [INT, { type: 'string' }] }, [], [['union_type', []]]],
    ['a place inside the branch', { anyOf: [MODEL, { type: 'string' }] }, { a: 1 }, [['greater_than_equal', ['a']]]],
    [
      'a union of a union',
      { anyOf: [{ anyOf: [MODEL, INT] }, { type: 'null' }] },
      { a: 1 },
      [['greater_than_equal', ['a']]],
    ],
    ['`oneOf` as `anyOf`', { oneOf: [INT, { type: 'null' }] }, 1, [['greater_than_equal', []]]],
    [
      'two branches fit',
      { anyOf: [MODEL, { type: 'object', required: ['b'] }] },
      {},
      [
        ['missing', ['a']],
        ['missing', ['b']],
      ],
    ],
  ])('%s', async (_, schema, value, expected) => {
    const found = (await details(ofX(schema), { x: value })).map(({ type, loc }) => [type, loc.slice(2)]);
    expect(found).toEqual(expected);
  });

  test('the unions of two items are separate', async () => {
    const list = ofX({ type: 'array', items: { anyOf: [INT, { type: 'null' }] } });
    expect(await details(list, { x: ['a', 1, 7, null] })).toMatchObject([
      { loc: ['body', 'x', 0], type: 'int_type' },
      { loc: ['body', 'x', 1], type: 'greater_than_equal' },
    ]);
  });
});

test('at most 20 violations are listed, and the message has at most 200 characters', async () => {
  const error = await refusal(ofX({ type: 'array', items: { type: 'string' } }), {
    x: Array.from({ length: 500 }, () => 1),
  });
  expect(error?.details).toHaveLength(20);
  expect(error?.message.length).toBe(200);
});

test('a long name of the caller is cut', async () => {
  const [detail] = await details(ofX({}), { ['n'.repeat(5_000)]: 1 });
  expect(detail?.loc[1]).toBe('n'.repeat(200));
});

test('names of every object’s members are parameters like others', async () => {
  const spec = fn({
    type: 'object',
    properties: { constructor: { type: 'string' } },
    required: ['constructor'],
    additionalProperties: false,
  });
  expect(await details(spec, {})).toMatchObject([{ loc: ['body', 'constructor'], type: 'missing' }]);
  expect(await details(spec, JSON.parse('{"constructor": "a", "__proto__": 1}'))).toMatchObject([
    { loc: ['body', '__proto__'], type: 'unexpected' },
  ]);
  expect(await refusal(spec, { constructor: 'a' })).toBeUndefined();
});

test('of a large body, the first violation is reported', async () => {
  const spec = ofX({ type: 'array', items: { type: 'string' } });
  expect(await details(spec, { x: [1, 2, 3] }, 100_000)).toMatchObject([
    { loc: ['body', 'x', 0], type: 'string_type' },
  ]);
});

test('the function’s process judges a body whose check would take too long', async () => {
  const spec = ofX({ type: 'array', items: { type: 'string', pattern: '^[a-z]{2,200}$' } });
  expect(await refusal(spec, { x: [1] }, 1024 * 1024)).toBeUndefined();
  expect(await refusal(spec, { x: [1] }, 1024)).toBeDefined();
});

test('a schema that the gateway cannot read is reported once, and the function’s process judges its calls', async () => {
  unread.length = 0;
  const parts = Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`p${at}`, { type: 'string' }]));
  for (const [name, parameters] of Object.entries({
    many: { type: 'object', properties: parts },
    remote: { $ref: 'https://example.com/schema.json' },
    dangling: { $ref: '#/$defs/None' },
    list: [] as unknown as JsonSchema,
  })) {
    const spec = fn(parameters, name);
    expect(await refusal(spec, { p1: 1 })).toBeUndefined();
    expect(await refusal(spec, { p1: 1 })).toBeUndefined();
  }
  expect(unread).toEqual(['many', 'remote', 'dangling', 'list']);
});

describe('a large schema', () => {
  const FIELDS = 300;
  const name = (at: number): string => `p${at}`;
  const model = (kind: string) => ({
    type: 'object',
    properties: {
      kind: { const: kind },
      ...Object.fromEntries(Array.from({ length: 40 }, (_, at) => [name(at), { type: 'integer', minimum: 1 }])),
    },
    required: ['kind'],
    additionalProperties: false,
  });
  const flat = fn({
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: FIELDS }, (_, at) => [name(at), { type: 'string' }])),
    required: ['p0'],
    additionalProperties: false,
  });
  const union = ofX({
    type: 'array',
    items: { anyOf: [model('a'), { type: 'null' }, { type: 'string' }, model('b')] },
  });

  test('the gateway serves calls between the pieces of a compilation', async () => {
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await refusal(flat, { p0: 'a' });
    isDone = true;
    expect(turns).toBeGreaterThan(FIELDS / 40);
  });

  test('violations in all pieces are listed', async () => {
    expect(await details(flat, { p1: 1, p299: 2, more: 3 })).toMatchObject([
      { loc: ['body', 'p1'], type: 'string_type' },
      { loc: ['body', 'p299'], type: 'string_type' },
      { loc: ['body', 'p0'], type: 'missing' },
      { loc: ['body', 'more'], type: 'unexpected' },
    ]);
    expect(await refusal(flat, { p0: 'a', p299: 'b' })).toBeUndefined();
    expect(await details(flat, { p0: 1, p299: 2 }, 100_000)).toHaveLength(1);
  });

  test('the errors of a union that is cut are those of its fitting members', async () => {
    expect(await refusal(union, { x: ['a', null, { kind: 'a', p39: 1 }, { kind: 'b', p0: 1 }] })).toBeUndefined();
    expect(await details(union, { x: [1, { kind: 'a', p39: 0 }] })).toEqual([
      { loc: ['body', 'x', 0], msg: 'Input should match one of the allowed types', type: 'union_type' },
      { loc: ['body', 'x', 1, 'p39'], msg: 'Input should be greater than or equal to 1', type: 'greater_than_equal' },
      { loc: ['body', 'x', 1, 'kind'], msg: 'Input should be "b"', type: 'enum' },
    ]);
  });
});

test('one object is compiled once', async () => {
  let reads = 0;
  const spec = ofX({});
  const schema = { ...spec.schema?.parameters };
  const watched = Object.defineProperty(schema, 'properties', {
    enumerable: true,
    get: () => {
      reads++;
      return { x: { type: 'string' } };
    },
  });
  const counted = { ...spec, schema: { kind: 'value', parameters: watched } } as FunctionSpec;
  await refusal(counted, {});
  const after = reads;
  for (let call = 0; call < 10; call++) await refusal(counted, { x: 'a' });
  expect(after).toBeGreaterThan(0);
  expect(reads).toBe(after);
});
