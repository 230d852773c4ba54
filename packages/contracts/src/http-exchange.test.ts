import { expect, test } from '@jest/globals';
import { type AnswerHead, decodeHead, decodeRequest, encodeHead, encodeRequest } from './http-exchange.ts';

const HEAD: AnswerHead = {
  status: 207,
  headers: [
    ['Set-Cookie', 'a=1'],
    ['Set-Cookie', 'b=2'],
    ['X-Name', 'caf\u00e9'],
  ],
  form: 'binary',
};

test('a forwarded request keeps its target, repeated headers in their order and every byte of its body', () => {
  const request = {
    method: 'PROPFIND',
    target: '/a%2Fb//c?x=%F0%9F%A6%8A&x=2',
    headers: [
      ['Cookie', 'a=1'],
      ['cookie', 'caf\u00e9'],
    ] as const,
    body: Buffer.from([0, 10, 13, 10, 255, 123, 10]),
  };
  expect(decodeRequest(encodeRequest(request))).toEqual(request);
});

test('a forwarded request without a body gets an empty body', () => {
  const { body } = decodeRequest(encodeRequest({ method: 'GET', target: '/', headers: [], body: Buffer.alloc(0) }));
  expect(body).toHaveLength(0);
});

test('a decoded head equals the encoded head, with bytes beyond ASCII and repeated headers', () => {
  expect(decodeHead(encodeHead(HEAD))).toEqual(HEAD);
});

test('a head that is too large is refused with its reason, and never cut', () => {
  const headers = [['x-large', 'x'.repeat(33_000)]] as const;
  expect(() => encodeHead({ ...HEAD, headers })).toThrow(
    expect.objectContaining({ code: 'upstream_reset', message: expect.stringContaining('32768 bytes') }),
  );
});

test.each([
  ['a name with a space', [['x y', 'z']]],
  ['a line break in a value', [['x', 'a\r\nset-cookie: b']]],
  ['a character that is no byte', [['x', '\u{1f98a}']]],
] as [string, AnswerHead['headers']][])(
  'a header that HTTP does not allow is refused with its reason: %s',
  (_, headers) => {
    expect(() => encodeHead({ ...HEAD, headers })).toThrow(expect.objectContaining({ code: 'upstream_reset' }));
  },
);

test.each([101, 199, 600, 999, 200.5])('status %d is no answer', (status) => {
  expect(() => encodeHead({ ...HEAD, status })).toThrow(expect.objectContaining({ code: 'upstream_reset' }));
});
