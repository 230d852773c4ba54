// Contract 1, "Body": forms as parameters.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { canonical, type Form, readForm } from './form-body.ts';
import { parametersOfForm } from './form-parameters.ts';

const LIMIT = 1_000_000;

/** Returns the content type and the bytes of a form as `fetch` sends it. */
async function sent(entries: readonly (readonly [string, string | File])[]): Promise<[string, Buffer]> {
  const data = new FormData();
  for (const [name, value] of entries) data.append(name, value);
  const request = new Request('http://localhost', { method: 'POST', body: data });
  return [request.headers.get('content-type') as string, Buffer.from(await request.arrayBuffer())];
}

const formOf = async (entries: readonly (readonly [string, string | File])[]): Promise<Form> =>
  readForm(...(await sent(entries)));

const spec = (properties: object, more: object = {}) => ({
  name: 'f',
  parameters: [],
  extra: false,
  schema: {
    kind: 'value' as const,
    parameters: { type: 'object', properties, required: [], additionalProperties: false, ...more },
  },
});

const urlencoded = (text: string): Promise<Form> => readForm('application/x-www-form-urlencoded', Buffer.from(text));

const parameters = async (properties: object, text: string, more?: object): Promise<string> =>
  parametersOfForm(spec(properties, more), await urlencoded(text), LIMIT).params.toString();

const integer = { type: 'integer' };

test.each([
  ['text', { type: 'string' }, 'x=5', '{"x":"5"}'],
  ['text without a type', {}, 'x=5', '{"x":"5"}'],
  ['an integer', integer, 'x=+12345678901234567890', '{"x":12345678901234567890}'],
  ['an integer with a sign', integer, 'x=%2B5', '{"x":5}'],
  ['a number', { type: 'number' }, 'x=1.50', '{"x":1.50}'],
  ['no number', { type: 'number' }, 'x=1,5', '{"x":"1,5"}'],
  ['a boolean', { type: 'boolean' }, 'x=on', '{"x":true}'],
  ['a boolean', { type: 'boolean' }, 'x=False', '{"x":false}'],
  ['an empty optional number', { anyOf: [integer, { type: 'null' }] }, 'x=', '{"x":null}'],
  ['an optional number', { anyOf: [integer, { type: 'null' }] }, 'x=7', '{"x":7}'],
  ['an empty optional text', { anyOf: [{ type: 'string' }, { type: 'null' }] }, 'x=', '{"x":""}'],
  ['a list', { type: 'array', items: integer }, 'x=1&x=2', '{"x":[1,2]}'],
  ['a list of one', { type: 'array', items: integer }, 'x=1', '{"x":[1]}'],
  ['a list as JSON', { type: 'array', items: integer }, 'x=[1,2]', '{"x":[1,2]}'],
  ['an object as JSON', { type: 'object' }, 'x={"a":1}', '{"x":{"a":1}}'],
  ['a choice of numbers', { enum: [1, 2] }, 'x=2', '{"x":2}'],
  ['a choice of texts', { enum: ['1', 'b'] }, 'x=1', '{"x":"1"}'],
  ['a doubled field', integer, 'x=1&x=2', '{"x":["1","2"]}'],
  ['a name with umlauts and a plus', { type: 'string' }, 'x=%C3%BC+b', '{"x":"ü b"}'],
])('%s is converted as the schema requires', async (_, schema, text, expected) => {
  expect(await parameters({ x: schema }, text)).toBe(expected);
});

test('local references are followed, and names of members of every object are parameters', async () => {
  const $defs = { N: integer };
  expect(await parameters({ x: { $ref: '#/$defs/N' } }, 'x=3', { $defs })).toBe('{"x":3}');
  expect(await parameters({}, '__proto__=1&constructor=2')).toBe('{"__proto__":"1","constructor":"2"}');
});

test('files follow the parameters, and are strings for the check', async () => {
  const content = randomBytes(100_000);
  const form = await formOf([
    ['n', '3'],
    ['photo', new File([content], 'größe.png', { type: 'image/png' })],
    ['more', new File(['a'], 'a.txt')],
    ['more', new File(['b\n'], 'b.txt')],
  ]);
  const binary = { type: 'string', format: 'binary' };
  const called = spec({ n: integer, photo: binary, more: { type: 'array', items: binary } });
  const { params, value } = parametersOfForm(called, form, LIMIT);
  expect(value).toEqual({ n: 3, photo: '', more: ['', ''] });
  const end = params.indexOf('\n');
  expect(params[0]).toBe(0);
  expect(JSON.parse(params.toString('utf8', 1, end))).toEqual({
    parameters: { n: 3 },
    files: [
      { parameter: 'photo', name: 'größe.png', content_type: 'image/png', bytes: 100_000 },
      { parameter: 'more', list: true, name: 'a.txt', content_type: 'application/octet-stream', bytes: 1 },
      { parameter: 'more', list: true, name: 'b.txt', content_type: 'application/octet-stream', bytes: 2 },
    ],
  });
  expect(params.subarray(end + 1)).toEqual(Buffer.concat([content, Buffer.from('ab\n')]));
});

test('a file for a parameter of another type is refused', async () => {
  const form = await formOf([['n', new File(['1'], 'a')]]);
  expect(() => parametersOfForm(spec({ n: integer }), form, LIMIT)).toThrow(
    expect.objectContaining({
      code: 'invalid_input',
      details: [{ loc: ['body', 'n'], msg: 'A file needs a parameter of type bytes or BinaryIO', type: 'file_type' }],
    }),
  );
});

test('parameters over the limit are refused, also if the form is smaller', async () => {
  const form = await urlencoded(`x=${'%01'.repeat(100)}`);
  expect(() => parametersOfForm(spec({ x: {} }), form, 500)).toThrow(
    expect.objectContaining({ code: 'payload_too_large' }),
  );
});

test('equal forms have equal bytes, whatever their boundary is', async () => {
  const entries = [
    ['a', '1'],
    ['f', new File(['x'], 'n')],
  ] as const;
  const [one, two] = [await sent(entries), await sent(entries)];
  expect(one[0]).not.toBe(two[0]);
  expect(canonical(await readForm(...one))).toEqual(canonical(await readForm(...two)));
  const other = await formOf([entries[0], ['f', new File(['y'], 'n')]]);
  expect(canonical(other)).not.toEqual(canonical(await readForm(...one)));
});

test('a file input without a choice is no field', async () => {
  expect((await formOf([['f', new File([], '')]])).size).toBe(0);
});

const MULTIPART = 'multipart/form-data; boundary=B';
const part = (head: string, body = 'v'): string => `--B\r\n${head}\r\n\r\n${body}\r\n`;
const named = (name: string): string => `Content-Disposition: form-data; name="${name}"`;

test.each([
  ['no boundary', 'multipart/form-data', `${part(named('a'))}--B--\r\n`],
  ['no part', MULTIPART, 'hello'],
  ['a body that ends early', MULTIPART, part(named('a'), 'half').slice(0, -3)],
  ['a file that ends early', MULTIPART, part(`${named('a')}; filename="x"`, 'half').slice(0, -3)],
  ['no end', MULTIPART, part(named('a'))],
  ['thousands of parts', MULTIPART, `${part(named('a')).repeat(1_001)}--B--\r\n`],
  ['thousands of pairs', 'application/x-www-form-urlencoded', 'a=1&'.repeat(1_001)],
  ['a field without a name', MULTIPART, `${part('Content-Disposition: form-data; name=""')}--B--\r\n`],
  ['a long name', MULTIPART, `${part(named('n'.repeat(201)))}--B--\r\n`],
  ['bytes that are not UTF-8', 'application/x-www-form-urlencoded', Buffer.from([0x61, 0x3d, 0xff])],
])('a form with %s is refused', async (_, type, body) => {
  await expect(readForm(type, Buffer.from(body as string))).rejects.toMatchObject({ code: 'invalid_request' });
});

test('a part with a huge header is no field', async () => {
  const huge = `X-Pad: ${'a'.repeat(20_000)}\r\n${named('lost')}`;
  const form = await readForm(MULTIPART, Buffer.from(`${part(huge)}${part(named('kept'))}--B--\r\n`));
  expect([...form.keys()]).toEqual(['kept']);
});

test('the end of a large file is found at every place of the pieces', async () => {
  const size = 256 * 1024;
  for (const less of [0, 1, 2, 60, 61, 62, 63, 64, 65, 66]) {
    const content = 'x'.repeat(size - less);
    const form = await readForm(MULTIPART, Buffer.from(`${part(`${named('f')}; filename="x"`, content)}--B--\r\n`));
    // jest takes a second to compare such a Buffer, and compares a text at once.
    const files = form.get('f')?.map((file) => (typeof file === 'string' ? file : { ...file, bytes: `${file.bytes}` }));
    expect(files).toEqual([{ name: 'x', type: 'text/plain', bytes: content }]);
  }
});

/** The worker and the harness test the same file (harness/PROTOCOL.md). */
const SNAPSHOT = join(import.meta.dirname, '../../../worker/harness/snapshots/worker-run-files.frame');

test('parameters with files have the bytes of the snapshot', async () => {
  const frame = readFileSync(SNAPSHOT);
  const form = await formOf([
    ['n', '12345678901234567890'],
    ['photo', new File([Buffer.from([0x89, 0xff, 10])], 'größe.png', { type: 'image/png' })],
    ['more', new File([Buffer.from([0, 0x7b])], 'a.bin')],
    ['more', new File([], 'b.bin')],
  ]);
  const file = { type: 'string', format: 'binary' };
  const properties = { n: integer, photo: file, more: { type: 'array', items: file } };
  expect(parametersOfForm(spec(properties), form, LIMIT).params).toEqual(frame.subarray(frame.indexOf(0)));
});
