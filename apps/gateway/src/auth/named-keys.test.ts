// Contract 6, `JWT_SECRETS`: keys with names, and keys of one project.
import { createHmac } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import { JwtService } from '@nestjs/jwt';
import { NamedKeys, namedKeysOf } from './named-keys.ts';
import { FixedKey, secretKey } from './token-keys.ts';
import { type Grant, Tokens } from './tokens.ts';

const MAIN = 'the main key of thirty-two characters';
const ACME = 'the key of acme, thirty-two characters';
const OPS = 'the key of operators, thirty-two chars';
const keys = new NamedKeys(
  namedKeysOf(`acme-1@acme:${ACME}, ops:${OPS}`.replaceAll(', thirty', ' thirty')),
  new FixedKey(secretKey(MAIN)),
);
const jwt = new JwtService({});

function verdict(project: unknown, secret: string, kid?: string): string {
  const text = secret.replaceAll(', thirty', ' thirty');
  const token = jwt.sign(
    { project_id: project },
    { secret: text, expiresIn: 60, ...(kid !== undefined && { keyid: kid }) },
  );
  try {
    return [...(new Tokens(jwt, keys, {}).verify(token) as Grant).projects].join();
  } catch (error) {
    return error instanceof ServiceError ? error.code : String(error);
  }
}

test('the main key verifies a token without a name or with an unknown name', () => {
  expect(verdict('acme', MAIN)).toBe('acme');
  expect(verdict('acme', MAIN, 'unknown')).toBe('acme');
  expect(verdict('acme', MAIN, 'ops')).toBe('unauthorized');
  expect(verdict('acme', OPS)).toBe('unauthorized');
});

test('a named key signs for every project', () => {
  expect(verdict('acme', OPS, 'ops')).toBe('acme');
  expect(verdict('*', OPS, 'ops')).toBe('*');
});

test.each([
  ['acme', 'acme'],
  [['acme'], 'acme'],
  ['demo', 'unauthorized'],
  ['*', 'unauthorized'],
  [['acme', 'demo'], 'unauthorized'],
  [['acme', '*'], 'unauthorized'],
])('the key of one project signs for that project alone: %j is %s', (project, expected) => {
  expect(verdict(project, ACME, 'acme-1')).toBe(expected);
});

test('a key that was removed verifies no token, even if the text of the key is known', () => {
  const signature = createHmac('sha256', ACME).update('x').digest('hex');
  expect(verdict('acme', signature, 'acme-1')).toBe('unauthorized');
});

test.each([
  ['no-secret', 'entry 1 must be'],
  [`:${MAIN}`, 'entry 1 must be'],
  [`ops:${MAIN},acme@acme:hunter2`, 'the secret of entry 2'],
  [`k@a b:${MAIN}`, 'the project of entry 1'],
  [`k:${MAIN},k@acme:${MAIN}`, 'the same kid'],
])('%j is rejected, and no secret is shown', (text, message) => {
  expect(() => namedKeysOf(text)).toThrow(message);
  expect(() => namedKeysOf(text)).not.toThrow(/hunter2|main key/);
});
