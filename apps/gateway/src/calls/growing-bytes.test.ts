import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { GrowingBytes } from './bodies.ts';

test('any pieces are joined in order, and the buffer is at most twice as large as their bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 50 }), (pieces) => {
      const bytes = new GrowingBytes();
      for (const piece of pieces) bytes.add(Buffer.from(piece));
      const whole = Buffer.concat(pieces);
      expect(bytes.bytes().equals(whole)).toBe(true);
      expect(bytes.length).toBe(whole.length);
      expect(bytes.heldBytes).toBeLessThanOrEqual(Math.max(1024, 2 * whole.length));
    }),
  );
});

test('a body in one piece is not copied', () => {
  const piece = Buffer.from('{"a":1}');
  const bytes = new GrowingBytes();
  bytes.add(piece);
  expect(bytes.bytes().buffer).toBe(piece.buffer);
});

test('a million one-byte pieces are added in linear time', () => {
  const bytes = new GrowingBytes();
  const piece = Buffer.from('x');
  for (let n = 0; n < 1_000_000; n += 1) bytes.add(piece);
  expect(bytes.length).toBe(1_000_000);
  expect(bytes.heldBytes).toBeLessThan(2_000_001);
});
