// Contract 6, "Tokens": a revocation takes effect at its gateway at once, and at other gateways with their next poll.
import { errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { JwtService } from '@nestjs/jwt';
import { GatewayUnderTest, PROJECT, SECRET } from '../../test/gateway-under-test.ts';

let gateway: GatewayUnderTest;
let other: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  other = await GatewayUnderTest.start({}, gateway);
});
afterAll(async () => {
  await other.stop();
  await gateway.stop();
});

const UNKNOWN_RUN = `/v4/${PROJECT}/runs/0199aaaa-0000-7000-8000-000000000000`;
const bearer = (claims: object, jwtid?: string) => ({
  authorization: `Bearer ${new JwtService({}).sign(
    { project_id: PROJECT, sub: 'ada', ...claims },
    { secret: SECRET, expiresIn: 3600, ...(jwtid !== undefined && { jwtid }) },
  )}`,
});
const revoker = bearer({ sub: 'root', scope: 'tokens:write' });
const revoke = (path: string, headers: Record<string, string> = revoker) =>
  gateway.request(`/v4/${PROJECT}/tokens${path}`, { method: 'DELETE', headers });
const status = async (at: GatewayUnderTest, headers: Record<string, string>): Promise<number> =>
  (await at.get(UNKNOWN_RUN, headers)).status;

test('a revoked token returns 401 at once, although it was remembered as valid, and other tokens stay valid', async () => {
  const [bad, good] = [bearer({}, 'bad'), bearer({}, 'good')];
  for (const at of [gateway, other]) expect(await status(at, bad)).toBe(404);
  expect((await revoke('/bad')).status).toBe(204);
  const answer = await gateway.get(UNKNOWN_RUN, bad);
  expect([answer.status, errorOf(answer)]).toMatchObject([
    401,
    { code: 'unauthorized', message: 'The token has been revoked.' },
  ]);
  expect(answer.headers['www-authenticate']).toContain('Bearer');
  expect(await status(gateway, good)).toBe(404);
  // Another gateway polls every second. The test does not wait for the timer.
  await other.store.revocations.run();
  expect(await status(other, bad)).toBe(401);
});

test('a subject’s revocation covers the tokens that were issued so far, and later tokens are valid', async () => {
  const issued = Math.floor(Date.now() / 1000);
  const [before, after] = [bearer({ sub: 'bob', iat: issued }), bearer({ sub: 'bob', iat: issued + 60 })];
  expect((await revoke('?sub=bob')).status).toBe(204);
  expect(await status(gateway, before)).toBe(401);
  expect(await status(gateway, after)).toBe(404);
});

test('a token for one project cannot revoke tokens of other projects', async () => {
  const wide = bearer({ project_id: ['elsewhere', PROJECT] }, 'wide');
  expect((await revoke('/wide')).status).toBe(204);
  expect(await status(gateway, wide)).toBe(401);
  expect((await gateway.get('/v4/elsewhere', wide)).status).not.toBe(401);
  expect((await revoke('/wide', bearer({ project_id: '*', scope: 'tokens:write' }))).status).toBe(204);
  expect((await gateway.get('/v4/elsewhere', wide)).status).toBe(401);
});

test.each([
  ['no scope', {}, 403],
  ['all usual scopes', { scope: 'call runs:read runs:write' }, 403],
  ['the scope, for another project', { scope: 'tokens:write', project_id: 'elsewhere' }, 403],
  ['the scope among others', { scope: ['call', 'tokens:write'] }, 204],
])('a token with %s gets %i', async (_name, claims, expected) => {
  expect((await revoke('/whatever', bearer(claims))).status).toBe(expected);
});

test('a token with only the scope tokens:write has no other rights', async () => {
  expect(await status(gateway, revoker)).toBe(403);
});

test.each(['?sub=', '', '?sub=a&sub=b', '?sub=a&x=1', '/a?exp=soon', `/${'x'.repeat(257)}`])(
  'tokens%s returns 400',
  async (path) => {
    const answer = await revoke(path);
    expect([path, answer.status]).toEqual([path, 400]);
  },
);

test('a revocation is kept until its token expires', async () => {
  const exp = Math.floor(Date.now() / 1000) + 100;
  expect((await revoke(`/known?exp=${exp}`)).status).toBe(204);
  expect((await revoke(`/expired?exp=1000`)).status).toBe(204);
  const line = gateway.lines.find(
    ({ msg, revoked }) => msg === 'token revoked' && JSON.stringify(revoked).includes('"known"'),
  );
  expect(line).toMatchObject({ until: new Date(exp * 1000).toISOString(), by: 'root' });
});
