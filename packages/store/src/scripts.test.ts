import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { packArguments, type ScriptArgument, unpackReply } from './scripts.ts';

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await testRedis();
  redis = new Redis(server.socket ?? String(server.port));
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** Returns the unpacked reply of a script that returns `expression`. */
const answer = async (expression: string, args: readonly ScriptArgument[] = []) => {
  const script = `local ARGV = cmsgpack.unpack(ARGV[1]) return cmsgpack.pack(${expression})`;
  return unpackReply((await redis.callBuffer('EVAL', script, 0, packArguments(args))) as Buffer);
};

const texts = [
  '',
  'a',
  'é',
  '€'.repeat(40),
  '\u0000\r\n',
  '😀'.repeat(20),
  ...[31, 32, 64, 65, 255, 256, 70_000].map((n) => 'x'.repeat(n)),
];

test('Redis reads every string unchanged', async () => {
  const read = (await answer('ARGV', texts)) as Buffer[];
  expect(read.map(String)).toEqual(texts);
});

test('bytes that are no text arrive unchanged in both directions', async () => {
  const bytes = [1, 40, 300, 70_000].map((length) => Buffer.alloc(length, 0xff));
  expect(await answer('ARGV', bytes)).toEqual(bytes);
});

test.each([0, 1, 15, 16, 70_000])('%i arguments arrive in the script, and in its reply', async (count) => {
  const list = Array.from({ length: count }, (_, n) => n);
  expect(((await answer('ARGV', list)) as Buffer[]).map(Number)).toEqual(list);
  expect(await answer('#ARGV', list)).toBe(count);
});

test('a script receives numbers as strings', async () => {
  expect(String(await answer("type(ARGV[1]) .. ARGV[1] .. ' ' .. ARGV[2]", [1_700_000_000_000, 0.5]))).toBe(
    'string1700000000000 0.5',
  );
});

test.each([
  0,
  1,
  127,
  128,
  255,
  256,
  65_535,
  65_536,
  2 ** 31,
  2 ** 32,
  1_763_740_000_000_123,
  -1,
  -32,
  -33,
  -128,
  -129,
  -40_000,
  -3_000_000_000,
])('a reply contains the number %i', async (number) => {
  expect(await answer(`tonumber(ARGV[1])`, [number])).toBe(number);
});

test('lists hold lists, empty lists, false, true and fractions', async () => {
  expect(await answer("{{}, {1, 'a', {2}}, false, true, 7 / 2}")).toEqual([[], [1, Buffer.from('a'), [2]], null, 1, 3]);
});

test('an unsupported type in a reply is refused', () => {
  expect(() => unpackReply(Buffer.from([0x81, 0x01, 0x02]))).toThrow('0x81');
});
