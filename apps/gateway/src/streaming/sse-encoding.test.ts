import { errorObject, type ItemBatch, type ItemKind } from '@inference-proxy/contracts';
import { describe, expect, test } from '@jest/globals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { batchOfResult, encodeEvent, encodeItems, errorData, isEvents } from './events.ts';

const batch = (kind: ItemKind, ...items: string[]): ItemBatch => ({
  first: 1,
  count: items.length,
  kind,
  blob: Buffer.from(items.join('\n')),
});

/** Returns the events as an independent parser reads them. */
function parsed(bytes: Buffer): EventSourceMessage[] {
  const events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => events.push(event) });
  parser.feed(bytes.toString());
  return events;
}

const data = (bytes: Buffer): string[] => parsed(bytes).map((event) => event.data);

describe('an item is one event', () => {
  test.each<[string, ItemBatch, string]>([
    ['strings', batch('s', 'one', 'two'), 'data: one\n\ndata: two\n\n'],
    [
      'JSON texts',
      batch('j', '{"a":1.0}', '12345678901234567890'),
      'data: {"a":1.0}\n\ndata: 12345678901234567890\n\n',
    ],
    ['an empty string', batch('s', ''), 'data: \n\n'],
    ['a leading space', batch('s', ' a'), 'data:  a\n\n'],
    ['several lines', batch('m', 'a\nb\n'), 'data: a\ndata: b\ndata: \n\n'],
    ['CRLF', batch('m', 'a\r\nb'), 'data: a\ndata: b\n\n'],
    ['a lone CR among strings', batch('s', 'a\rb', 'c'), 'data: a\ndata: b\n\ndata: c\n\n'],
    ['the token `:` and blank line', batch('m', ':\n\n'), 'data: :\ndata: \ndata: \n\n'],
    ['more than ASCII', batch('s', 'é', '😀\u2028'), 'data: é\n\ndata: 😀\u2028\n\n'],
  ])('%s', (_, items, text) => {
    expect(encodeItems(items, true).toString()).toBe(text);
  });

  test('another parser reads any strings, with newlines as line ends', () => {
    const item = fc.string({
      unit: fc.oneof(fc.constantFrom('\n', '\r', '\r\n', ':', ' ', 'data', '\0'), fc.string()),
    });
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 20 }), (items) => {
        const plain = items.filter((each) => !each.includes('\n'));
        const bytes = Buffer.concat([
          ...(plain.length > 0 ? [encodeItems(batch('s', ...plain), false)] : []),
          ...items.filter((each) => each.includes('\n')).map((each) => encodeItems(batch('m', each), false)),
        ]);
        const expected = [...plain, ...items.filter((each) => each.includes('\n'))];
        expect(data(bytes)).toEqual(
          expected.map((each) =>
            Buffer.from(each)
              .toString()
              .replace(/\r\n|\r/g, '\n'),
          ),
        );
      }),
      { numRuns: 500 },
    );
  });
});

describe('ready-made events', () => {
  test.each([
    'data: {"x":1}\n\n',
    'data:x\n\n',
    'data: x\r\n\r\n',
    'data: x\r\r',
    'event: token\nid: 7\nretry: 10\ndata: a\ndata: b\n\n',
    ': a comment\ndata: x\n\n',
    'data: a\n\ndata: b\n\n',
    'data: a\n\n\ndata: b\n\n',
    'data: [DONE]\n\n',
    'data: x\n\n: comment\n\n',
    ': comment\n\ndata: x\n\n',
  ])('%j is sent unchanged', (text) => {
    expect(isEvents(text)).toBe(true);
    expect(encodeItems(batch('m', text), true).toString()).toBe(text);
  });

  test.each([
    ':\n\n',
    '\n\n',
    ': a comment\n\n',
    ': one\n\n: two\n: three\n\n',
    'retry: 10\n\n',
    'id: 7\n\n',
    'id: 7\nretry: 10\n\n',
    'retry: 10\n\ndata: x\n\n',
    'data: x\n\nid: 7\n\n',
    'event: x\n\n',
    'data: x\n',
    'data: x',
    'data: x\n\nmore\n\n',
    ': data: x\n\n',
    'data: x\n\nevent: y\n\n',
    'datum: x\n\n',
    'data: x\n\ndata: y\n',
    ' data: x\n\n',
    'He said data: x\n\n',
    '',
  ])('%j is an ordinary item', (text) => {
    expect(isEvents(text)).toBe(false);
    expect(data(encodeItems(batch('m', text), true))).toEqual([text]);
  });

  test('an app that disables ready-made events gets wrapped text', () => {
    expect(data(encodeItems(batch('m', 'data: x\n\n'), false))).toEqual(['data: x\n\n']);
  });
});

test('a plain value is one event', () => {
  const text = (json: string) => encodeItems(batchOfResult(Buffer.from(json)), true).toString();
  expect(text('{"a":1.0}')).toBe('data: {"a":1.0}\n\n');
  expect(text('"a\\nb\\u00e9"')).toBe('data: a\ndata: bé\n\n');
  expect(text('""')).toBe('data: \n\n');
});

test('a failure is an event named error', () => {
  const said = errorData('0199', errorObject({ code: 'worker_lost', message: 'two\nlines' }));
  const [event] = parsed(encodeEvent('error', said));
  expect(event).toMatchObject({ event: 'error', id: undefined });
  expect(JSON.parse(event?.data ?? '')).toEqual({
    run_id: '0199',
    error: { code: 'worker_lost', message: 'two\nlines', retryable: true },
  });
  expect(parsed(encodeEvent('error', said, 8))).toEqual([{ ...event, id: '8' }]);
});
