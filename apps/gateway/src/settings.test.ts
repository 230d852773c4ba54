import { generateKeyPairSync } from 'node:crypto';
import { readSettings, SettingsError } from '@inference-proxy/platform';
import { expect, test } from '@jest/globals';
import { GatewaySettings } from './settings.ts';

const SECRET = 'a key of at least thirty-two characters';
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const PEM = publicKey.export({ type: 'spki', format: 'pem' }).toString();
const PRIVATE = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const REST = { REDIS_URL: 'redis://127.0.0.1:6379', SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') };

function problems(env: Record<string, string>): readonly string[] {
  try {
    readSettings(GatewaySettings.schema, { ...REST, ...env });
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}
const ONE = 'expected exactly one of JWT_SECRET, JWT_PUBLIC_KEY, JWT_JWKS_URL';

test.each<[string, Record<string, string>, string[]]>([
  ['a secret', { JWT_SECRET: SECRET }, []],
  ['a public key', { JWT_PUBLIC_KEY: PEM }, []],
  ['a public key in one line', { JWT_PUBLIC_KEY: PEM.replaceAll('\n', '\\n') }, []],
  ['a key set', { JWT_JWKS_URL: 'https://id.example.com/jwks' }, []],
  ['nothing', {}, [ONE]],
  ['two of them', { JWT_SECRET: SECRET, JWT_PUBLIC_KEY: PEM }, [ONE]],
  ['all of them', { JWT_SECRET: SECRET, JWT_PUBLIC_KEY: PEM, JWT_JWKS_URL: 'https://id.example.com/' }, [ONE]],
  ['a short secret', { JWT_SECRET: 'short' }, ['JWT_SECRET is wrong: expected at least 32 characters']],
  [
    'a public key as secret, although everybody has public keys',
    { JWT_SECRET: PEM },
    ['JWT_SECRET is wrong: expected a secret, got a PEM: give it as JWT_PUBLIC_KEY'],
  ],
  [
    'a private key as public key',
    { JWT_PUBLIC_KEY: PRIVATE },
    ['JWT_PUBLIC_KEY is wrong: expected a public key, got a private key: remove it from the settings'],
  ],
  [
    'a text that is not a URL',
    { JWT_JWKS_URL: 'id.example.com' },
    ['JWT_JWKS_URL is wrong: expected an http or https URL, got "id.example.com"'],
  ],
])('exactly one setting verifies tokens: %s', (_, env, expected) => {
  expect(problems(env)).toEqual(expected);
});

test('all problems are reported at once, and no key is shown', () => {
  const found = problems({ PORT: 'x', CORS_ORIGINS: 'app.example.com' });
  expect(found).toHaveLength(3);
  expect(found.join()).toContain(ONE);
  expect(problems({ JWT_PUBLIC_KEY: PRIVATE }).join()).not.toContain(PRIVATE.slice(40, 60));
});

test('no setting keeps a withdrawn key for more than five minutes or leaves a request no time to arrive', () => {
  const given = { JWT_JWKS_URL: 'https://id.example.com/', JWT_JWKS_MAX_AGE_S: '300', REQUEST_TIMEOUT_S: '0' };
  expect(problems(given)).toEqual([
    'JWT_JWKS_MAX_AGE_S is wrong: expected 1 to 290, got "300"',
    'REQUEST_TIMEOUT_S is wrong: expected a time from 0.1 to 86400 seconds, got "0"',
  ]);
});

test('BODIES_IN_FLIGHT_BYTES has room for one body', () => {
  const given = { JWT_SECRET: SECRET, MAX_BODY_BYTES: '8MiB', BODIES_IN_FLIGHT_BYTES: '4MiB' };
  expect(problems(given)).toEqual(['BODIES_IN_FLIGHT_BYTES is wrong: expected at least MAX_BODY_BYTES']);
});
