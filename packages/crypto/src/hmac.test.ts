// RFC 2104, held against Node's own.
import { createHmac, randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { hmacSha256 } from './hmac.ts';

const LENGTHS = [0, 1, 31, 32, 63, 64, 65, 200, 4096, 65_500, 65_536, 65_537, 200_000];

test.each([1, 32, 63, 64, 65, 128, 2000])(
  'with a key of %i bytes it is what Node makes of messages of every length',
  (size) => {
    const key = randomBytes(size);
    const before = Buffer.from(key);
    for (const length of LENGTHS) {
      const rest = randomBytes(length);
      for (const encoding of ['hex', 'base64'] as const) {
        const expected = createHmac('sha256', key).update('msg_1.1.').update(rest).digest(encoding);
        expect(hmacSha256(key, 'msg_1.1.', rest, encoding)).toBe(expected);
      }
    }
    expect(key).toEqual(before);
  },
);
