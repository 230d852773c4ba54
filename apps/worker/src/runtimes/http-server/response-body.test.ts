// Contract 1, "Custom runtimes": a body becomes the same items whatever the size of its chunks, and no item exceeds its limit.
import { ServiceError } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import type { ItemsFrame } from '../runtime.ts';
import { itemReader } from './response-body.ts';

const LIMITS = { maxItemBytes: 1_000, maxOutputBytes: 1_000 };
type Form = Parameters<typeof itemReader>[0];

/** Returns the kinds and texts of the items that a body's pieces become. */
function itemsOf(form: Form, pieces: readonly (Buffer | string)[]): string[] {
  const items: string[] = [];
  const reader = itemReader(form, LIMITS, ({ kind, count, blob }: ItemsFrame) => {
    const texts = kind === 'm' ? [blob.toString()] : blob.toString().split('\n');
    expect(texts).toHaveLength(count);
    items.push(...texts.map((text) => `${kind} ${text}`));
  });
  for (const piece of pieces) reader.push(Buffer.from(piece));
  reader.end();
  return items;
}

const codeOf = (act: () => unknown): string | undefined => {
  try {
    act();
    return undefined;
  } catch (error) {
    return error instanceof ServiceError ? error.code : String(error);
  }
};

const EVENTS = [
  ': hello\n\n',
  'data: plain\n\n',
  'data:no space\r\ndata:  two\r\n\r\n',
  'event: named\rid: 1\rretry: 20\rdata\r\r',
  'id: 2\n\n',
  'retry: soon\ndata: ü \u{1F600} é\nunknown: field\n\n',
  'event: nothing\n\n',
  'data: {"a": "b\\n"}\n: between\ndata:\n\n',
].join('');

const ITEMS = [
  's plain',
  'm no space\n two',
  'm event: named\nid: 1\nretry: 20\ndata: \n\n',
  'm id: 2\ndata: ü \u{1F600} é\n\n',
  'm {"a": "b\\n"}\n',
];

test('an event stream has the same items, whatever the size of its chunks', () => {
  const bytes = Buffer.from(EVENTS);
  expect(itemsOf('sse', [bytes])).toEqual(ITEMS);
  for (let at = 1; at < bytes.length; at++)
    expect(itemsOf('sse', [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(ITEMS);
  expect(
    itemsOf(
      'sse',
      [...bytes].map((byte) => Buffer.from([byte])),
    ),
  ).toEqual(ITEMS);
});

test.each([
  ['data: cut\n', 'upstream_reset'],
  ['data: cut', 'upstream_reset'],
  ['event: cut\n', 'upstream_reset'],
  ['dat', 'upstream_reset'],
  [': a comment that is cut', undefined],
  ['id: 5\nretry: 7\n', undefined],
  ['data: whole\n\n\n\n', undefined],
  ['', undefined],
])('an event stream that ends after %j: %s', (text, code) => {
  expect(codeOf(() => itemsOf('sse', [`data: before\n\n${text}`]))).toBe(code);
});

test('an event may be as large as an item, in any number of pieces and lines, and not larger', () => {
  const whole = `data: ${'x'.repeat(LIMITS.maxItemBytes - 20)}\n\n`;
  expect(itemsOf('sse', whole.split('').concat(whole))).toHaveLength(2);
  const lines = `data: ${'x'.repeat(400)}\n`.repeat(3);
  expect(codeOf(() => itemsOf('sse', [lines]))).toBe('output_too_large');
  expect(codeOf(() => itemsOf('sse', ['data: ', 'x'.repeat(LIMITS.maxItemBytes)]))).toBe('output_too_large');
  expect(codeOf(() => itemsOf('sse', ['data\n'.repeat(LIMITS.maxItemBytes + 2)]))).toBe('output_too_large');
  expect(itemsOf('sse', [`${'data\n'.repeat(LIMITS.maxItemBytes + 1)}\n`])).toHaveLength(1);
  // Comments keep a connection alive for any time.
  expect(
    itemsOf(
      'sse',
      Array.from({ length: 100 }, () => `: ${'x'.repeat(100)}\n`),
    ),
  ).toEqual([]);
});

test('lines become the same items, whatever the size of the chunks', () => {
  const bytes = Buffer.from('{"a": 1}\n\n "ü"\r\nnot json\n1.0\n{"big": 12345678901234567890}');
  const items = ['j {"a": 1}', 'j "ü"', 's not json', 'j 1.0', 'j {"big": 12345678901234567890}'];
  for (let at = 0; at <= bytes.length; at++)
    expect(itemsOf('ndjson', [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(items);
});

test('an incomplete last line means that the stream broke', () => {
  expect(codeOf(() => itemsOf('ndjson', ['{"a": 1}\n{"b": ']))).toBe('upstream_reset');
  expect(codeOf(() => itemsOf('ndjson', ['x'.repeat(600), 'x'.repeat(600)]))).toBe('output_too_large');
});

test('the pieces of a text are its unchanged bytes, cut between characters', () => {
  const bytes = Buffer.from('aü\n\u{1F600}€z');
  for (let at = 0; at <= bytes.length; at++) {
    const items = itemsOf('chunks', [bytes.subarray(0, at), bytes.subarray(at)]);
    expect(items.map((item) => item.slice(2)).join('')).toBe(bytes.toString());
    expect(items.join('')).not.toContain('\uFFFD');
  }
  // Bytes that are not UTF-8 are passed on unchanged.
  const raw: Buffer[] = [];
  const reader = itemReader('chunks', LIMITS, ({ blob }) => raw.push(blob));
  for (const byte of [0xff, 0x80, 0xc3]) reader.push(Buffer.from([byte]));
  reader.end();
  expect(Buffer.concat(raw)).toEqual(Buffer.from([0xff, 0x80, 0xc3]));
});
