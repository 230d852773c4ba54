import type { ItemBatch, ItemKind } from '@inference-proxy/contracts';
import { describe, expect, test } from '@jest/globals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { encodeNumbered } from './events.ts';

const batch = (first: number, kind: ItemKind, ...items: string[]): ItemBatch => ({
  first,
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

test.each<[string, ItemBatch, string]>([
  ['strings', batch(1, 's', 'one', 'two'), 'id: 1\ndata: one\n\nid: 2\ndata: two\n\n'],
  ['JSON texts', batch(41, 'j', '{"a":1.0}', '2'), 'id: 41\ndata: {"a":1.0}\n\nid: 42\ndata: 2\n\n'],
  ['empty strings', batch(1, 's', '', ''), 'id: 1\ndata: \n\nid: 2\ndata: \n\n'],
  ['several lines', batch(9, 'm', 'a\nb\n'), 'id: 9\ndata: a\ndata: b\ndata: \n\n'],
  ['lone CRs', batch(1, 's', 'a\rb', '\r'), 'id: 1\ndata: a\ndata: b\n\nid: 2\ndata: \ndata: \n\n'],
  ['more than ASCII', batch(1, 's', '\ufeff', '東京\u2028'), 'id: 1\ndata: \ufeff\n\nid: 2\ndata: 東京\u2028\n\n'],
])('each item of %s has its number', (_, items, text) => {
  expect(encodeNumbered(items, true, '').toString()).toBe(text);
});

test('each item has its name, if events are named', () => {
  expect(encodeNumbered(batch(3, 's', 'a', 'b'), true, 'item').toString()).toBe(
    'id: 3\nevent: item\ndata: a\n\nid: 4\nevent: item\ndata: b\n\n',
  );
  expect(encodeNumbered(batch(3, 'm', 'a\nb'), true, 'item').toString()).toBe(
    'id: 3\nevent: item\ndata: a\ndata: b\n\n',
  );
});

describe('only the last of an item’s ready-made events is numbered, and ids in the text are dropped', () => {
  test.each([
    ['data: x\n\n', 'id: 7\ndata: x\n\n'],
    ['id: own\ndata: x\n\n', 'id: 7\ndata: x\n\n'],
    ['id\ndata: x\n\n', 'id: 7\ndata: x\n\n'],
    ['data: x\nid:9\n\n', 'id: 7\ndata: x\n\n'],
    ['id: 1\ndata: a\n\nid: 2\ndata: b\n\n', 'data: a\n\nid: 7\ndata: b\n\n'],
    ['data: a\r\n\r\nevent: end\r\ndata: b\r\n\r\n', 'data: a\n\nid: 7\nevent: end\ndata: b\n\n'],
    ['data: a\r\rdata: b\r\r', 'data: a\n\nid: 7\ndata: b\n\n'],
    ['data: a\n\n\n\ndata: b\n\n: comment\n\n', 'data: a\n\nid: 7\ndata: b\n\n: comment\n\n'],
    [': comment\n\nretry: 10\ndata: id: 5\n\n', ': comment\n\nid: 7\nretry: 10\ndata: id: 5\n\n'],
  ])('%j', (item, text) => {
    const kind = item.includes('\n') ? 'm' : 's';
    expect(encodeNumbered(batch(7, kind, item), true, '').toString()).toBe(text);
  });

  test('the rich stream also drops names in the text', () => {
    const item = ': c\n\ndata: a\n\nevent: delta\ndata: b\n\n';
    expect(encodeNumbered(batch(7, 'm', item), true, 'item').toString()).toBe(
      ': c\n\nevent: item\ndata: a\n\nid: 7\nevent: item\ndata: b\n\n',
    );
  });

  test('the rich stream drops every spelling of a name', () => {
    const names = ['event: done', 'event:done', 'event: item\nevent: error', 'event', 'event:'];
    for (const end of ['\n', '\r', '\r\n']) {
      for (const name of names) {
        const item = `${name}\ndata: 1\ndata: 2\nevent: done\n\n`.replaceAll('\n', end);
        const bytes = encodeNumbered(batch(7, item.includes('\n') ? 'm' : 's', item), true, 'item');
        expect(parsed(bytes)).toEqual([{ id: '7', event: 'item', data: '1\n2' }]);
      }
    }
  });

  test('an app that disables ready-made events gets numbered text', () => {
    expect(parsed(encodeNumbered(batch(7, 'm', 'id: 3\ndata: x\n\n'), false, ''))).toEqual([
      { id: '7', event: undefined, data: 'id: 3\ndata: x\n\n' },
    ]);
  });
});

test('another parser reads any strings with their numbers, and no number too early', () => {
  const piece = fc.constantFrom(
    '\n',
    '\r',
    '\r\n',
    ':',
    ' ',
    'data: a',
    'id: 9',
    'event: e',
    '\n\n',
    '\0',
    '\ufeff',
    'é',
  );
  const item = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 6 }), fc.boolean(), (items, preformatted) => {
      const bytes = items.map((each, at) =>
        encodeNumbered(batch(at + 1, each.includes('\n') ? 'm' : 's', each), preformatted, ''),
      );
      const ids = bytes.map((each) => parsed(each).map(({ id }) => id));
      ids.forEach((each, at) => {
        expect(each.at(-1)).toBe(String(at + 1));
        expect(each.slice(0, -1).every((id) => id === undefined)).toBe(true);
      });
      if (!preformatted) {
        expect(bytes.flatMap((each) => parsed(each).map(({ data }) => data))).toEqual(
          items.map((each) => each.replace(/\r\n|\r/g, '\n')),
        );
      }
    }),
    { numRuns: 500 },
  );
});
