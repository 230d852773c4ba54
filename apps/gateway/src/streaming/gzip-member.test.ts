import { randomBytes } from 'node:crypto';
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

test('a reader can decode all bytes after every write', () => {
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
      // After the trailer, gunzip checks the checksum and the size.
      return gunzipSync(Buffer.concat([written, member.trailer()])).equals(plain);
    }),
    { numRuns: 200 },
  );
});

test('a large piece is deflated, and bytes that cannot be compressed are stored', () => {
  const member = new GzipMember();
  expect(member.block(Buffer.alloc(100_000, 'data: x\n\n')).length).toBeLessThan(1000);
  const random = randomBytes(1000);
  expect(member.block(random).length).toBe(random.length + 5);
});

const WORDS =
  'The gateway sends each event when the function yields the item, and the reader of the stream gets the event at once.'.split(
    /(?= )/,
  );
const tokens = (n: number): string => WORDS[n % WORDS.length] as string;

test.each<[string, (n: number) => string, number]>([
  ['words', (n) => `data: ${tokens(n)}\n\n`, 0.95],
  ['numbered words', (n) => `id: ${n}\ndata: ${tokens(n)}\n\n`, 0.8],
  [
    'chunks of a chat completion',
    (n) =>
      `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${tokens(n)}"}}]}\n\n`,
    0.2,
  ],
])('a stream of %s shrinks, although each event is written separately', (_, event, most) => {
  const member = new GzipMember();
  let [plain, written] = [0, member.head.length + member.trailer().length];
  for (let n = 0; n < 1000; n++) {
    const bytes = Buffer.from(event(n));
    plain += bytes.length;
    written += member.block(bytes).length;
  }
  expect(written / plain).toBeLessThan(most);
});
