import { describe, expect, test } from '@jest/globals';
import { headerCount, headerOnce, Query, textHeaderOnce } from './request-head.ts';

const HEADERS = ['Host', 'a', 'X-Key', 'one', 'Accept', 'x-key', 'X-TWICE', '1', 'x-twice', '1', 'X-Empty', ' '];
const refused = (message: string) => expect.objectContaining({ code: 'invalid_request', message });

describe('a header that may occur once', () => {
  test('is read by its name in any case, and a value that equals its name does not count', () => {
    expect([headerOnce(HEADERS, 'x-KEY'), headerCount(HEADERS, 'x-key')]).toEqual(['one', 1]);
    expect([headerOnce(HEADERS, 'X-None'), headerCount(HEADERS, 'x-none')]).toEqual([undefined, 0]);
    expect(headerCount(HEADERS, 'x-twice')).toBe(2);
  });

  test('is rejected if it is doubled, or if it is empty and must not be empty', () => {
    expect(() => headerOnce(HEADERS, 'X-Twice')).toThrow(refused('`X-Twice` is given more than once.'));
    expect(headerOnce(HEADERS, 'X-Empty')).toBe(' ');
    expect(() => textHeaderOnce(HEADERS, 'X-Empty')).toThrow(refused('`X-Empty` is empty.'));
  });
});

describe('a query parameter that may occur once', () => {
  test('is decoded, with its name', () => {
    const query = Query.of('/v4/p?a=b%20c+d&%61sync=true&=');
    expect([query.once('a'), query.flag('async'), query.once('b')]).toEqual(['b c d', true, undefined]);
    expect(query.names()).toEqual(['a', 'async', '']);
  });

  test('is rejected if it is doubled, also in another spelling', () => {
    for (const text of ['async=true&async=true', 'async=true&%61sync=true'])
      expect(() => new Query(text).flag('async')).toThrow(refused('`async` is given more than once.'));
  });

  test('is rejected if it is none of the accepted words', () => {
    expect(() => new Query('ids=TRUE').flag('ids')).toThrow(refused('`ids` must be `true` or `false`.'));
    expect(() => new Query('events=').word('events', ['full'])).toThrow(refused('`events` must be `full`.'));
  });

  test('is absent in a target without a query', () => {
    for (const target of [undefined, '/v4/p', '/v4/p?']) {
      expect([Query.of(target).once('a'), Query.of(target).flag('a'), Query.of(target).names()]).toEqual([
        undefined,
        false,
        [],
      ]);
    }
  });
});
