// Contract 6, "Tokens": the program `token` makes and revokes tokens for the gateway on its machine.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment } from '@inference-proxy/test/environment';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, SECRET } from '../test/gateway-under-test.ts';

const program = join(import.meta.dirname, 'token.ts');
const token = (args: string[], env: Record<string, string> = { JWT_SECRET: SECRET }) =>
  promisify(execFile)(process.execPath, ['--conditions=source', program, ...args], {
    env: childEnvironment(env),
  });

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start({ JWT_ISSUER: 'us', JWT_AUDIENCE: 'callers' });
});
afterAll(() => gateway.stop());

test('its tokens are valid for their project, with the issuer and audience that the gateway requires', async () => {
  const env = { JWT_SECRET: SECRET, JWT_ISSUER: 'us', JWT_AUDIENCE: 'callers' };
  const { stdout } = await token(['--project', PROJECT, '--ttl', '60', '--scope', 'runs:read'], env);
  const claims = JSON.parse(Buffer.from(stdout.split('.')[1] ?? '', 'base64url').toString());
  expect(claims).toMatchObject({ sub: 'operator', project_id: PROJECT, scope: 'runs:read', exp: claims.iat + 60 });
  const path = `/v4/${PROJECT}/runs/0199aaaa-0000-7000-8000-000000000000`;
  expect((await gateway.get(path, { authorization: `Bearer ${stdout.trim()}` })).status).toBe(404);
  const other = await token(['--project', 'other'], env);
  expect((await gateway.get(path, { authorization: `Bearer ${other.stdout.trim()}` })).status).toBe(403);
  const without = await token(['--project', PROJECT]);
  expect((await gateway.get(path, { authorization: `Bearer ${without.stdout.trim()}` })).status).toBe(401);
});

const ENV = { JWT_SECRET: SECRET, JWT_ISSUER: 'us', JWT_AUDIENCE: 'callers' };
const claimsOf = (text: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString());

test('each token has an id; --revoke takes the token or its id, and --revoke-subject takes the subject', async () => {
  const env = { ...ENV, PORT: String(gateway.port) };
  const path = `/v4/${PROJECT}/runs/0199aaaa-0000-7000-8000-000000000000`;
  const made = async (sub: string): Promise<string> =>
    (await token(['--project', PROJECT, '--sub', sub], env)).stdout.trim();
  const status = async (text: string): Promise<number> =>
    (await gateway.get(path, { authorization: `Bearer ${text}` })).status;
  const [whole, byId, bySubject] = [await made('ada'), await made('ada'), await made('bob')];
  expect(claimsOf(whole).jti).not.toBe(claimsOf(byId).jti);
  expect(await Promise.all([whole, byId, bySubject].map(status))).toEqual([404, 404, 404]);
  const { stdout } = await token(['--project', PROJECT, '--revoke', whole], env);
  expect(stdout).toContain('Revoked');
  expect(await Promise.all([whole, byId, bySubject].map(status))).toEqual([401, 404, 404]);
  await token(['--project', PROJECT, '--revoke', String(claimsOf(byId).jti)], env);
  await token(['--project', PROJECT, '--revoke-subject', 'bob'], env);
  expect(await Promise.all([whole, byId, bySubject].map(status))).toEqual([401, 401, 401]);
});

test('a project with its own key gets tokens of this key, and no other project does', async () => {
  const own = 'the key of this project alone, 256 bits'.replaceAll(',', '');
  const env = { ...ENV, JWT_SECRETS: `main:${'m'.repeat(32)},own@${PROJECT}:${own}` };
  const kidOf = async (...args: string[]): Promise<unknown> => {
    const { stdout } = await token(['--project', ...args], env);
    return JSON.parse(Buffer.from(stdout.split('.')[0] ?? '', 'base64url').toString()).kid;
  };
  expect(await kidOf(PROJECT)).toBe('own');
  expect(await kidOf('other')).toBeUndefined();
  expect(await kidOf('other', '--kid', 'main')).toBe('main');
  for (const wrong of ['own', 'unknown'])
    await expect(token(['--project', 'other', '--kid', wrong], env)).rejects.toMatchObject({ code: 1, stdout: '' });
});

test.each([
  [['--project', PROJECT, '--revoke', ''], /^Usage: /],
  [['--project', '*', '--revoke', 'x'], /^Usage: /],
  [['--project', PROJECT, '--revoke', 'x', '--revoke-subject', 'y'], /^Usage: /],
  [['--project'], /^Usage: /],
  [[], /^Usage: /],
  [['--project', 'a', '--ttl', '-1'], /^Usage: /],
  [['--project', 'a b'], /^The project name "a b" must have at most 63 letters/],
  [['--project', '../b'], /^The project name "..\/b"/],
  [['--project', 'demo,other'], /^The project name "demo,other"/],
  [['--project', 'x'.repeat(64)], /^The project name "x+"/],
])('%j is refused, and the message shows the right form', async (args, text) => {
  await expect(token(args)).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(text) });
});

test('without a secret, the message names who can sign', async () => {
  const refused = expect.stringContaining('the holder of the private key signs');
  await expect(token(['--project', PROJECT], {})).rejects.toMatchObject({ code: 1, stderr: refused });
});
