import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ServiceError } from '@inference-proxy/contracts';
import { createLogger } from '@inference-proxy/platform';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { JwtService } from '@nestjs/jwt';
import { KeySet, keySetUrl } from './key-set.ts';
import { type Grant, Tokens } from './tokens.ts';

const MAX_AGE_MS = 240_000;
const COOLDOWN_MS = 30_000;
const HOUR_S = 3600;
const jwt = new JwtService({});

interface Key {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly jwk: object;
}

function rsaKey(kid: string, more: object = {}): Key {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, ...more } };
}
const one = rsaKey('one');
const two = rsaKey('two');

/** An identity provider that answers with its keys, or as the test decides. */
class Provider {
  keys: readonly Key[] = [one];
  asked = 0;
  answer: ((response: ServerResponse) => void) | undefined;
  readonly server: Server = createServer((_, response) => {
    this.asked += 1;
    if (this.answer) this.answer(response);
    else response.end(JSON.stringify({ keys: this.keys.map(({ jwk }) => jwk) }));
  });

  async start(): Promise<URL> {
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    return new URL(`http://127.0.0.1:${(this.server.address() as AddressInfo).port}/jwks`);
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }
}

let provider: Provider;
let tokens: Tokens;
let lines: string[];
beforeEach(async () => {
  // Only the clock is fake. Sockets and time limits are real.
  jest.useFakeTimers({
    doNotFake: [
      'hrtime',
      'nextTick',
      'performance',
      'queueMicrotask',
      'setImmediate',
      'clearImmediate',
      'setInterval',
      'clearInterval',
      'setTimeout',
      'clearTimeout',
    ],
  });
  provider = new Provider();
  lines = [];
  const logger = createLogger({ name: 'test', destination: { write: (line) => void lines.push(line) } });
  const keys = new KeySet(await provider.start(), { maxAgeMs: MAX_AGE_MS, cooldownMs: COOLDOWN_MS }, logger);
  tokens = new Tokens(jwt, keys, {});
});
afterEach(async () => {
  jest.useRealTimers();
  await provider.stop();
});

const later = (ms: number): void => {
  jest.setSystemTime(Date.now() + ms);
};

function token({ kid, privateKey }: Key, header: object = {}, options: object = { algorithm: 'RS256' }): string {
  const claims = { project_id: 'acme', exp: Math.floor(Date.now() / 1000) + HOUR_S };
  return jwt.sign(claims, { privateKey, header: { kid, ...header } as never, ...options });
}

async function verdict(text: string): Promise<string> {
  try {
    return [...((await tokens.verify(text)) as Grant).projects].join();
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

test('the key that a token names verifies the token, and is fetched once for all tokens', async () => {
  expect(await Promise.all([token(one), token(one, { typ: 'at+jwt' }), token(one)].map(verdict))).toEqual([
    'acme',
    'acme',
    'acme',
  ]);
  expect(provider.asked).toBe(1);
});

test('RSA keys take PS256 too, and keys on P-256 take ES256', async () => {
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...ec.publicKey.export({ format: 'jwk' }), kid: 'ec' };
  provider.keys = [one, { kid: 'ec', privateKey: ec.privateKey, jwk }];
  expect(await verdict(token(one, {}, { algorithm: 'PS256' }))).toBe('acme');
  expect(await verdict(token({ kid: 'ec', privateKey: ec.privateKey, jwk }, {}, { algorithm: 'ES256' }))).toBe('acme');
  expect(await verdict(token({ kid: 'one', privateKey: ec.privateKey, jwk }, {}, { algorithm: 'ES256' }))).toBe(
    'unauthorized',
  );
});

test('a new key works when the cool-down is over, and unknown keys cause no earlier fetch', async () => {
  expect(await verdict(token(one))).toBe('acme');
  provider.keys = [one, two];
  later(COOLDOWN_MS - 1);
  expect(await verdict(token(two))).toBe('unauthorized');
  expect(provider.asked).toBe(1);
  later(1);
  expect(await verdict(token(two))).toBe('acme');
  expect(await verdict(token(rsaKey('three')))).toBe('unauthorized');
  expect(provider.asked).toBe(2);
});

test('a withdrawn key stops at the maximum age of its set, also for tokens that were verified before', async () => {
  const early = token(one);
  expect(await verdict(early)).toBe('acme');
  provider.keys = [two];
  later(MAX_AGE_MS - 10_000);
  // The set is renewed in the background of this request. The verified token is trusted for the rest of its time.
  expect(await verdict(early)).toBe('acme');
  later(10_000);
  expect(await verdict(early)).toBe('unauthorized');
  expect(await verdict(token(one))).toBe('unauthorized');
  expect(await verdict(token(two))).toBe('acme');
});

test('while the provider is unreachable, known keys work until their maximum age, and unknown keys return 503', async () => {
  expect(await verdict(token(one))).toBe('acme');
  provider.answer = (response) => response.destroy();
  later(MAX_AGE_MS - 1);
  expect(await verdict(token(one))).toBe('acme');
  expect(await verdict(token(two))).toBe('unavailable');
  later(1);
  expect(await verdict(token(one))).toBe('unavailable');
  provider.answer = undefined;
  later(1000);
  expect(await verdict(token(one))).toBe('acme');
});

test('a set is renewed before its maximum age, so that its provider may be unreachable for a while', async () => {
  const text = token(one);
  expect(await verdict(text)).toBe('acme');
  later(MAX_AGE_MS / 2);
  const renewed = once(provider.server, 'request');
  expect(await verdict(text)).toBe('acme');
  await renewed;
  expect(provider.asked).toBe(2);
});

test('an unreachable provider is asked once a second, for any number of tokens', async () => {
  provider.answer = (response) => response.writeHead(500).end();
  for (const kid of ['a', 'b', 'c']) expect(await verdict(token(rsaKey(kid)))).toBe('unavailable');
  expect(provider.asked).toBe(1);
  expect(lines).toHaveLength(1);
  later(1000);
  expect(await verdict(token(one))).toBe('unavailable');
  expect(provider.asked).toBe(2);
});

test.each<[string, (response: ServerResponse) => void]>([
  ['no JSON', (response) => response.end('hello')],
  ['another JSON', (response) => response.end('{"keys":7}')],
  ['a redirect', (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
  ['more than a mebibyte', (response) => response.end(`{"keys":[],"more":"${'x'.repeat(2 ** 20)}"}`)],
])('an answer that is %s is not a key set', async (_, answer) => {
  provider.answer = answer;
  expect(await verdict(token(one))).toBe('unavailable');
});

test.each<[string, () => Promise<string> | string]>([
  ['a symmetric one, by its text', () => jwt.sign({ project_id: 'acme' }, { secret: 'x'.repeat(32), expiresIn: 60 })],
  ['none', () => `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.`],
  ['a path', () => token(two, { kid: '../../one' })],
  ['a list', () => token(two, { kid: ['one'] })],
  ['an object’s own', () => token(two, { kid: '__proto__' })],
  ['another’s', () => token(two, { kid: 'one' })],
  ['a key that the token contains', () => token(two, { kid: 'two', jwk: two.jwk })],
  ['a key that the token points to', () => token(two, { kid: 'two', jku: 'http://127.0.0.1:1/' })],
])('a key that the set does not have is refused: %s', async (_, make) => {
  expect(await verdict(await make())).toBe('unauthorized');
  expect(provider.asked).toBeLessThan(2);
});

test('keys of the set that are too short, secret, private or for encryption verify nothing', async () => {
  const short = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const jwk = { ...short.publicKey.export({ format: 'jwk' }), kid: 'short' };
  provider.keys = [
    { kid: 'short', privateKey: short.privateKey, jwk },
    rsaKey('enc', { use: 'enc' }),
    { ...one, kid: 'secret', jwk: { kty: 'oct', k: 'c2VjcmV0', kid: 'secret', alg: 'HS256' } },
    rsaKey('other', { alg: 'PS256' }),
  ];
  const [, enc, , other] = provider.keys as [Key, Key, Key, Key];
  const shortly = token(
    { kid: 'short', privateKey: short.privateKey, jwk },
    {},
    { algorithm: 'RS256', allowInsecureKeySizes: true },
  );
  expect(await verdict(shortly)).toBe('unauthorized');
  expect(await verdict(token(enc))).toBe('unauthorized');
  expect(await verdict(token(other))).toBe('unauthorized');
  expect(await verdict(token(other, {}, { algorithm: 'PS256' }))).toBe('acme');
  expect(
    await verdict(
      jwt.sign({ project_id: 'acme' }, { secret: 'secret', expiresIn: 60, header: { alg: 'HS256', kid: 'secret' } }),
    ),
  ).toBe('unauthorized');
});

test('every fitting key is tried for a token without `kid`', async () => {
  provider.keys = [one, two];
  const { kid: _, ...unnamed } = two;
  expect(await verdict(token({ ...unnamed, kid: undefined as never }))).toBe('acme');
});

test('the address of a set is an http or https URL', () => {
  expect(keySetUrl('https://id.example.com/jwks').hostname).toBe('id.example.com');
  for (const wrong of ['id.example.com/jwks', 'file:///etc/keys', '']) expect(() => keySetUrl(wrong)).toThrow('http');
});
