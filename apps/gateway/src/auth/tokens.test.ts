import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import { describe, expect, test } from '@jest/globals';
import { JwtService } from '@nestjs/jwt';
import { FixedKey, publicKeyOfPem, secretKey } from './token-keys.ts';
import { type Grant, type TokenRules, Tokens } from './tokens.ts';

const SECRET = 'a key of at least thirty-two characters';
const NOW = 1_800_000_000_000;
const jwt = new JwtService({});
const claims = { sub: 'tester', project_id: 'acme', exp: NOW / 1000 + 60 };
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();

/** Returns a token that is put together by hand. `sign` makes its signature. */
function forged(header: unknown, payload: unknown, signature: (text: string) => Buffer): string {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${signature(text).toString('base64url')}`;
}
const hmac =
  (key: string | Buffer = SECRET, hash = 'sha256') =>
  (text: string): Buffer =>
    createHmac(hash, key).update(text).digest();
const hs256 = (payload: unknown, header: object = {}, key: string | Buffer = SECRET): string =>
  forged({ alg: 'HS256', typ: 'JWT', ...header }, payload, hmac(key));
const rs256 = (header: object = {}): string =>
  forged({ alg: 'RS256', ...header }, claims, (text) => sign('sha256', Buffer.from(text), rsa.privateKey));
const signedByEc = (text: string): Buffer =>
  sign('sha256', Buffer.from(text), { key: ec.privateKey, dsaEncoding: 'ieee-p1363' });
const es256 = (header: object = {}, dsaEncoding: 'ieee-p1363' | 'der' = 'ieee-p1363'): string =>
  forged({ alg: 'ES256', ...header }, claims, (text) =>
    sign('sha256', Buffer.from(text), { key: ec.privateKey, dsaEncoding }),
  );

/** The order of P-256's group (FIPS 186-4, D.1.2.3). If (r, s) is a valid signature, (r, n - s) is valid too. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const BY_SECRET = new FixedKey(secretKey(SECRET));
const BY_RSA = new FixedKey(publicKeyOfPem(pemOf(rsa.publicKey)));
const BY_EC = new FixedKey(publicKeyOfPem(pemOf(ec.publicKey)));

const granted = ({ projects, scopes }: Grant): string =>
  [...projects].join() + (scopes ? `: ${[...scopes].join()}` : '');

function verdict(token: string, keys = BY_SECRET, rules: TokenRules = {}): string {
  try {
    return granted(new Tokens(jwt, keys, rules, () => NOW).verify(token) as Grant);
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

describe('a token names its projects and scopes', () => {
  test.each([
    [claims, 'acme'],
    [{ ...claims, project_id: ['acme', 'demo'] }, 'acme,demo'],
    [{ ...claims, project_id: '*' }, '*'],
    [{ ...claims, project_id: undefined }, ''],
    [{ ...claims, project_id: 7 }, ''],
    [{ ...claims, project_id: { acme: true } }, ''],
    [{ ...claims, project_id: ['acme', 7, null] }, 'acme'],
    [{ ...claims, scope: 'call' }, 'acme: call'],
    [{ ...claims, scope: 'call runs:read' }, 'acme: call,runs:read'],
    [{ ...claims, scope: ['call', 'runs:write'] }, 'acme: call,runs:write'],
    [{ ...claims, scope: '' }, 'acme: '],
    [{ ...claims, scope: null }, 'acme: '],
  ])('%j: %j', (payload, expected) => {
    expect(verdict(hs256(payload))).toBe(expected);
  });
});

describe('accepted', () => {
  test.each([
    ['RS256 by an RSA key', rs256(), BY_RSA],
    [
      'PS256 by the same key',
      forged({ alg: 'PS256' }, claims, (text) =>
        sign('sha256', Buffer.from(text), { key: rsa.privateKey, padding: 6, saltLength: 32 }),
      ),
      BY_RSA,
    ],
    ['ES256 by a key on P-256', es256(), BY_EC],
    ['its other signature with the same meaning (RFC 7518 asks for no low s)', withOtherS(es256()), BY_EC],
    ['a `kid` that is not needed', hs256(claims, { kid: '../../dev/null' }), BY_SECRET],
    ['a certificate’s address, which is not followed', hs256(claims, { x5u: 'https://evil.example/' }), BY_SECRET],
    ['an `iat` of another clock', hs256({ ...claims, iat: NOW / 1000 + 30 }), BY_SECRET],
    ['a `nbf` that has just come', hs256({ ...claims, nbf: NOW / 1000 }), BY_SECRET],
  ])('%s', (_, token, keys) => {
    expect(verdict(token, keys)).toBe('acme');
  });
});

function withOtherS(token: string): string {
  const [head, payload, signature = ''] = token.split('.');
  const bytes = Buffer.from(signature, 'base64url');
  const other = (ORDER - BigInt(`0x${bytes.toString('hex', 32)}`)).toString(16).padStart(64, '0');
  bytes.write(other, 32, 'hex');
  return `${head}.${payload}.${bytes.toString('base64url')}`;
}

const good = hs256(claims);
const [goodHead = '', goodPayload = '', goodSignature = ''] = good.split('.');
const unsigned = (alg: unknown, header: object = {}): string =>
  `${encode({ alg, typ: 'JWT', ...header })}.${goodPayload}`;
const strange = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = pemOf(rsa.publicKey);

describe('rejected', () => {
  test.each<[string, string]>([
    ['no token', ''],
    ['no JWT', 'abc'],
    ['dots', '..'],
    ['two parts', `${goodHead}.${goodPayload}`],
    ['four parts', `${good}.${goodSignature}`],
    ['five parts, as an encrypted one has', `${encode({ alg: 'dir', enc: 'A256GCM' })}.a.b.c.d`],
    ['one without a signature', `${goodHead}.${goodPayload}.`],
    ['one that is too long', hs256({ ...claims, more: 'x'.repeat(8000) })],
    // Claims.
    ['an expired one', hs256({ ...claims, exp: NOW / 1000 })],
    ['one without an end', hs256({ ...claims, exp: undefined })],
    ['an end that is text', hs256({ ...claims, exp: '9999999999' })],
    ['an end that is null', hs256({ ...claims, exp: null })],
    ['an end in a list', hs256({ ...claims, exp: [NOW] })],
    ['an infinite `exp`', `${goodHead}.${Buffer.from('{"project_id":"acme","exp":1e999}').toString('base64url')}`],
    ['one that is not valid yet', hs256({ ...claims, nbf: NOW / 1000 + 10 })],
    ['a beginning that is text', hs256({ ...claims, nbf: '0' })],
    ['a payload that is text', hs256('text')],
    ['a payload that is null', hs256(null)],
    ['a payload that is a list', hs256([claims])],
    ['a payload that is no JSON', forged({ alg: 'HS256' }, '', hmac()).replace('IiI', 'e30x')],
    ['a token in a token', hs256(good, { cty: 'JWT' })],
    // Signers.
    ['another secret', hs256(claims, {}, 'another key of thirty-two characters')],
    ['no secret at all', hs256(claims, {}, '')],
    ['an empty file as secret, by its path', hs256(claims, { kid: '../../../../dev/null' }, '')],
    ['a secret that an SQL injection would choose', hs256(claims, { kid: "x' UNION SELECT 'evil" }, 'evil')],
    ['a key that it brings along', rsaSigned({ jwk: strange.publicKey.export({ format: 'jwk' }) })],
    ['a key that the token points to', rsaSigned({ jku: 'https://evil.example/jwks.json', kid: 'evil' })],
    ['a certificate that the token points to', rsaSigned({ x5u: 'https://evil.example/cert.pem' })],
    ['a certificate that it brings along', rsaSigned({ x5c: ['MIIB'] })],
    ['a changed payload', `${goodHead}.${encode({ ...claims, project_id: '*' })}.${goodSignature}`],
    ['a changed header', `${encode({ alg: 'HS256', typ: 'JWT', kid: 'x' })}.${goodPayload}.${goodSignature}`],
    ['a cut signature', good.slice(0, -4)],
    // Algorithms.
    ...[
      'none',
      'None',
      'NONE',
      'nOnE',
      '',
      ' none',
      'none\0',
      'hs256',
      'HS256 ',
      null,
      0,
      true,
      ['HS256'],
      { alg: 'HS256' },
    ].flatMap((alg): [string, string][] => [
      [`alg ${JSON.stringify(alg)} without a signature`, `${unsigned(alg)}.`],
      [
        `alg ${JSON.stringify(alg)} with the right one`,
        `${unsigned(alg)}.${hmac()(unsigned(alg)).toString('base64url')}`,
      ],
    ]),
    ['no alg', forged({ typ: 'JWT' }, claims, hmac())],
    ['longer hashes than the one pinned', forged({ alg: 'HS384' }, claims, hmac(SECRET, 'sha384'))],
    ['the longest', forged({ alg: 'HS512' }, claims, hmac(SECRET, 'sha512'))],
    ['another kind of key', rs256()],
    ['an extension that it says must be understood', hs256(claims, { crit: ['exp'] })],
    ['an empty list of such', hs256(claims, { crit: [] })],
    ['an unencoded payload (RFC 7797)', hs256(claims, { b64: false, crit: ['b64'] })],
    ['a `kid` that is no text', hs256(claims, { kid: 7 })],
    ['a header that is null', forged(null, claims, hmac())],
    ['a header that is a list', forged([{ alg: 'HS256' }], claims, hmac())],
    ['a header that is no JSON', `e30x.${goodPayload}.${goodSignature}`],
    // Spellings.
    ['padding', `${goodHead}.${goodPayload}.${goodSignature}=`],
    [
      'padding everywhere',
      good
        .split('.')
        .map((part) => `${part}==`)
        .join('.'),
    ],
    ['the other alphabet of base64', good.replaceAll('-', '+').replaceAll('_', '/').replace(/.$/, '+')],
    ['a last character with bits that mean nothing', `${good.slice(0, -1)}${nextCharacter(good)}`],
    ['a space behind it', `${good} `],
    ['a newline behind it', `${good}\n`],
    ['a newline within', `${goodHead}.\n${goodPayload}.${goodSignature}`],
    ['a NUL behind it', `${good}\0`],
    ['a NUL within', `${goodHead}\0.${goodPayload}.${goodSignature}`],
    ['percent escapes', good.replaceAll('.', '%2E')],
    ['JSON serialization', JSON.stringify({ protected: goodHead, payload: goodPayload, signature: goodSignature })],
    ['hex', Buffer.from(good).toString('hex')],
    ['letters that only look alike', good.replace(/^e/, 'е')],
  ])('%s', (_, token) => {
    expect(verdict(token)).toBe('unauthorized');
  });

  test.each<[string, string, FixedKey]>([
    ...[pem, pem.trim(), pem.replaceAll('\n', '\\n'), pem.replaceAll('\n', ''), pem.replaceAll('\n', '\r\n')].map(
      (text): [string, string, FixedKey] => ['the public key’s text as secret', hs256(claims, {}, text), BY_RSA],
    ),
    ['its bytes as secret', hs256(claims, {}, rsa.publicKey.export({ type: 'spki', format: 'der' })), BY_RSA],
    ['its older bytes as secret', hs256(claims, {}, rsa.publicKey.export({ type: 'pkcs1', format: 'der' })), BY_RSA],
    ['its JWK as secret', hs256(claims, {}, JSON.stringify(rsa.publicKey.export({ format: 'jwk' }))), BY_RSA],
    ['an EC key’s text as secret', hs256(claims, {}, pemOf(ec.publicKey)), BY_EC],
    ['alg none with an RSA key', `${encode({ alg: 'none' })}.${goodPayload}.`, BY_RSA],
    ['another RSA key', rsaSigned({}), BY_RSA],
    [
      'a longer hash by the right key',
      forged({ alg: 'RS512' }, claims, (text) => sign('sha512', Buffer.from(text), rsa.privateKey)),
      BY_RSA,
    ],
    [
      'PS256 without its padding',
      forged({ alg: 'PS256' }, claims, (text) => sign('sha256', Buffer.from(text), rsa.privateKey)),
      BY_RSA,
    ],
    [
      'SHA-1 named RS256',
      forged({ alg: 'RS256' }, claims, (text) => sign('sha1', Buffer.from(text), rsa.privateKey)),
      BY_RSA,
    ],
    ['RS256 with a key on P-256', rs256(), BY_EC],
    ['ES256 with an RSA key', es256(), BY_RSA],
    ['ES256 written as DER', es256({}, 'der'), BY_EC],
    ['ES256 of zeros (CVE-2022-21449)', forged({ alg: 'ES256' }, claims, () => Buffer.alloc(64)), BY_EC],
    [
      'ES256 of the group’s order',
      forged({ alg: 'ES256' }, claims, () => Buffer.from(ORDER.toString(16).repeat(2), 'hex')),
      BY_EC,
    ],
    [
      'ES256 with an additional byte',
      forged({ alg: 'ES256' }, claims, (text) => Buffer.concat([signedByEc(text), Buffer.alloc(1)])),
      BY_EC,
    ],
    ['ES256 with a byte less', forged({ alg: 'ES256' }, claims, (text) => signedByEc(text).subarray(1)), BY_EC],
    ['ES384 named for a key on P-256', es256({ alg: 'ES384' }), BY_EC],
    [
      'EdDSA',
      forged({ alg: 'EdDSA' }, claims, (text) =>
        sign(null, Buffer.from(text), generateKeyPairSync('ed25519').privateKey),
      ),
      BY_EC,
    ],
  ])('%s', (_, token, keys) => {
    expect(verdict(token, keys)).toBe('unauthorized');
  });

  test('another issuer or audience, if the settings name one', () => {
    const token = hs256({ ...claims, iss: 'us', aud: ['api', 'web'] });
    expect(verdict(token, BY_SECRET, { issuer: 'us', audience: 'api' })).toBe('acme');
    expect(verdict(token, BY_SECRET, { issuer: 'them' })).toBe('unauthorized');
    expect(verdict(token, BY_SECRET, { audience: 'other' })).toBe('unauthorized');
    expect(verdict(hs256(claims), BY_SECRET, { audience: 'api' })).toBe('unauthorized');
    expect(verdict(hs256({ ...claims, iss: ['us'] }), BY_SECRET, { issuer: 'us' })).toBe('unauthorized');
    expect(verdict(hs256({ ...claims, aud: { api: 1 } }), BY_SECRET, { audience: 'api' })).toBe('unauthorized');
  });
});

function rsaSigned(header: object): string {
  return forged({ alg: 'RS256', ...header }, claims, (text) => sign('sha256', Buffer.from(text), strange.privateKey));
}

/** In the last character of a 32-byte signature only four bits count, so the next character decodes to the same bytes. */
function nextCharacter(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet.charAt(alphabet.indexOf(token.slice(-1)) + 1);
}

describe('a public key', () => {
  test('may come from a certificate, or have `\\n` for its line breaks', () => {
    expect(verdict(rs256(), new FixedKey(publicKeyOfPem(pem.replaceAll('\n', '\\n'))))).toBe('acme');
    expect(
      publicKeyOfPem(
        createPublicKey(createPrivateKey(rsa.privateKey.export({ type: 'pkcs8', format: 'pem' })))
          .export({ type: 'pkcs1', format: 'pem' })
          .toString(),
      ),
    ).toEqual(publicKeyOfPem(pem));
  });

  test.each([
    ['a private key', rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), 'got a private key'],
    ['a short RSA key', pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey), 'at least 2048 bits'],
    ['another curve', pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey), 'on P-256'],
    ['another kind', pemOf(generateKeyPairSync('ed25519').publicKey), 'on P-256'],
    ['no key', 'hello', 'a public key or a certificate as PEM'],
  ])('%s is rejected at the start and not shown', (_, text, reason) => {
    expect(() => publicKeyOfPem(text)).toThrow(reason);
  });

  test('for PSS only verifies PS256 only', () => {
    const { publicKey } = generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
    expect(publicKeyOfPem(pemOf(publicKey)).algorithms).toEqual(['PS256']);
  });
});

describe('remembered tokens', () => {
  function remembering(until = Number.POSITIVE_INFINITY) {
    let now = NOW;
    let verified = 0;
    const counting = {
      verify(...args: Parameters<JwtService['verify']>): object {
        verified += 1;
        return jwt.verify(...args);
      },
    };
    const keys = { candidates: () => ({ keys: [secretKey(SECRET)], until }), tend: () => {} };
    const tokens = new Tokens(counting as JwtService, keys, {}, () => now);
    return {
      tokens,
      later(ms: number): void {
        now += ms;
      },
      count: () => verified,
    };
  }
  const lasting = hs256({ ...claims, exp: NOW / 1000 + 3600 });

  test('a token is verified once in five minutes', () => {
    const { tokens, later, count } = remembering();
    for (const ms of [0, 1000, 298_000]) {
      later(ms);
      tokens.verify(lasting);
    }
    expect(count()).toBe(1);
    later(1000);
    tokens.verify(lasting);
    expect(count()).toBe(2);
  });

  test('a token is forgotten at its expiry', () => {
    const { tokens, later } = remembering();
    tokens.verify(good);
    later(60_000);
    expect(() => tokens.verify(good)).toThrow('expired');
  });

  test('a token is forgotten when its key is no longer trusted', () => {
    const { tokens, later, count } = remembering(NOW + 2000);
    tokens.verify(lasting);
    later(2000);
    tokens.verify(lasting);
    expect(count()).toBe(2);
  });

  test('the oldest of more than ten thousand tokens is forgotten', () => {
    const { tokens, count } = remembering();
    const many = Array.from({ length: 10_001 }, (_, n) => hs256({ ...claims, n }));
    for (const token of many) tokens.verify(token);
    tokens.verify(many.at(-1) ?? '');
    expect(count()).toBe(10_001);
    tokens.verify(many[0] ?? '');
    expect(count()).toBe(10_002);
  });

  test('a rejected token is not remembered', () => {
    const { tokens, count } = remembering();
    for (let n = 0; n < 2; n += 1) expect(() => tokens.verify(`${good.slice(0, -2)}AA`)).toThrow('not valid');
    expect(count()).toBe(2);
  });
});
