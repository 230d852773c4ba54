import { constants, gunzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { GzipMember } from './gzip-member.ts';

const piece = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 5000 }),
  fc
    .tuple(fc.uint8Array({ minLength: 1, maxLength: 50 }), fc.nat({ max: 2000 }))
    .map(([start, times]) => Buffer.concat(Array<Uint8Array>(times + 1).fill(start))),
);

test('whatever is written is read again, all of it after every write', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const member = new GzipMember();
      let written = member.head;
      let plain = Buffer.alloc(0);
      for (const each of pieces) {
        plain = Buffer.concat([plain, each]);
        written = Buffer.concat([written, member.block(Buffer.from(each))]);
        const soFar = gunzipSync(written, { finishFlush: constants.Z_SYNC_FLUSH });
        if (!soFar.equals(plain)) return false;
      }
      // Complete: gunzip checks the checksum and the size.
      return gunzipSync(Buffer.concat([written, member.trailer()])).equals(plain);
    }),
    { numRuns: 200 },
  );
});

test('a large piece is deflated, a small one stored', () => {
  const member = new GzipMember();
  expect(member.block(Buffer.alloc(100_000, 'data: x\n\n')).length).toBeLessThan(1000);
  expect(member.block(Buffer.from('data: x\n\n')).length).toBe(9 + 5);
});
