import { createHmac, generateKeyPairSync } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import { describe, expect, test } from '@jest/globals';
import { JwtService } from '@nestjs/jwt';
import { Tokens } from './tokens.ts';

const SECRET = 'a key of at least thirty-two characters';
const NOW = 1_800_000_000_000;
const jwt = new JwtService({});
const claims = { sub: 'tester', project_id: 'acme', exp: NOW / 1000 + 60 };
const sign = (payload: object, secret = SECRET): string => jwt.sign(payload, { secret });
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token put together by hand, signed by `hash`. */
function forged(header: object, payload: unknown, hash = 'sha256', key: string = SECRET): string {
  const body = `${encode(header)}.${encode(payload)}`;
  return `${body}.${createHmac(hash, key).update(body).digest('base64url')}`;
}

function verdict(token: string, rules: Partial<ConstructorParameters<typeof Tokens>[1]> = {}, now = NOW): string {
  try {
    const { projects, scopes } = new Tokens(jwt, { secret: SECRET, ...rules }, () => now).verify(token);
    return [...projects].join() + (scopes ? `: ${[...scopes].join()}` : '');
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
    [{ ...claims, scope: 'call' }, 'acme: call'],
    [{ ...claims, scope: 'call runs:read' }, 'acme: call,runs:read'],
    [{ ...claims, scope: ['call', 'runs:write'] }, 'acme: call,runs:write'],
  ])('%j: %j', (payload, expected) => {
    expect(verdict(sign({ ...payload, iat: 1 }))).toBe(expected);
  });
});

describe('refused', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  test.each([
    ['no token', ''],
    ['no JWT', 'abc'],
    ['two parts', sign(claims).split('.').slice(0, 2).join('.')],
    ['an expired one', sign({ ...claims, exp: NOW / 1000 })],
    ['one without an end', sign({ sub: 'tester', project_id: 'acme' })],
    ['an end that is no number', forged({ alg: 'HS256', typ: 'JWT' }, { ...claims, exp: '9999999999' })],
    ['one that is not valid yet', sign({ ...claims, nbf: NOW / 1000 + 10 })],
    ['another key', sign(claims, 'another key of thirty-two characters')],
    ['alg none', `${encode({ alg: 'none', typ: 'JWT' })}.${encode(claims)}.`],
    ['alg None with a signature', forged({ alg: 'None', typ: 'JWT' }, claims)],
    ['a longer hash than the one pinned', forged({ alg: 'HS512', typ: 'JWT' }, claims, 'sha512')],
    [
      'another algorithm altogether',
      jwt.sign(claims, { privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }), algorithm: 'RS256' }),
    ],
    ['a payload that is no object', forged({ alg: 'HS256' }, 'text')],
    ['a payload that is null', forged({ alg: 'HS256' }, null)],
    ['a changed payload', sign(claims).replace(/\.[^.]+\./, `.${encode({ ...claims, project_id: '*' })}.`)],
  ])('%s', (_, token) => {
    expect(verdict(token)).toBe('unauthorized');
  });

  test('another issuer or audience, where one is configured', () => {
    const token = sign({ ...claims, iss: 'us', aud: ['api', 'web'] });
    expect(verdict(token, { issuer: 'us', audience: 'api' })).toBe('acme');
    expect(verdict(token, { issuer: 'them' })).toBe('unauthorized');
    expect(verdict(token, { audience: 'other' })).toBe('unauthorized');
    expect(verdict(sign(claims), { audience: 'api' })).toBe('unauthorized');
  });
});

describe('remembering', () => {
  function remembering() {
    let now = NOW;
    let verified = 0;
    const counting = {
      verify(...args: Parameters<JwtService['verify']>): object {
        verified += 1;
        return jwt.verify(...args);
      },
    };
    const tokens = new Tokens(counting as JwtService, { secret: SECRET }, () => now);
    return {
      tokens,
      later(ms: number): void {
        now += ms;
      },
      count: () => verified,
    };
  }

  test('a token is verified once in five minutes', () => {
    const { tokens, later, count } = remembering();
    const token = sign({ ...claims, exp: NOW / 1000 + 3600 });
    for (const ms of [0, 1000, 298_000]) {
      later(ms);
      tokens.verify(token);
    }
    expect(count()).toBe(1);
    later(1000);
    tokens.verify(token);
    expect(count()).toBe(2);
  });

  test('never past its end', () => {
    const { tokens, later } = remembering();
    const token = sign(claims);
    tokens.verify(token);
    later(60_000);
    expect(() => tokens.verify(token)).toThrow('expired');
  });

  test('of more than ten thousand the oldest is forgotten', () => {
    const { tokens, count } = remembering();
    const many = Array.from({ length: 10_001 }, (_, n) => sign({ ...claims, n }));
    for (const token of many) tokens.verify(token);
    tokens.verify(many.at(-1) ?? '');
    expect(count()).toBe(10_001);
    tokens.verify(many[0] ?? '');
    expect(count()).toBe(10_002);
  });
});
