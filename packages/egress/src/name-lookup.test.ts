// Contract 4, "Allowed addresses": name lookups against a real name server.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { errorCode, type NameLookup, nameLookup } from './name-lookup.ts';
import { type DnsServer, dnsServer } from './testing/dns-server.ts';

const PATIENCE = { timeout: 120_000, tries: 1 };

const folder = mkdtempSync(join(tmpdir(), 'hosts-'));
const hostsFile = join(folder, 'hosts');
let server: DnsServer;
let lookup: NameLookup;
/** For servers that answer: even on a busy machine, no query is sent twice. */
let patient: NameLookup;
const held = Promise.withResolvers<'NXDOMAIN'>();

beforeAll(async () => {
  writeFileSync(
    hostsFile,
    '# a comment\n10.9.8.7\thost.internal  Alias.Internal # behind\nfd00::1 host.internal\nnot-an-address x\n',
  );
  server = await dnsServer((name, type) => {
    if (name === 'both.test') return type === 'A' ? ['192.0.2.1', '192.0.2.2'] : ['2001:db8::1'];
    if (name === 'six.test') return type === 'A' ? [] : ['2606:4700::1111'];
    if (name === 'half.test') return type === 'A' ? ['192.0.2.9'] : 'silence';
    if (name === 'none.test') return [];
    if (name === 'held.test') return held.promise;
    return name === 'silent.test' ? 'silence' : 'NXDOMAIN';
  });
  lookup = nameLookup({ servers: [server.address], hostsFile });
  patient = nameLookup({ servers: [server.address], hostsFile, patience: PATIENCE });
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

test.each([
  ['both.test', ['192.0.2.1', '192.0.2.2', '2001:db8::1']],
  ['BOTH.test.', ['192.0.2.1', '192.0.2.2', '2001:db8::1']],
  ['six.test', ['2606:4700::1111']],
  ['host.internal', ['10.9.8.7', 'fd00::1']],
  ['ALIAS.internal', ['10.9.8.7']],
  ['localhost', ['127.0.0.1', '::1']],
  ['api.localhost.', ['127.0.0.1', '::1']],
])('%s is %j', async (name, addresses) => {
  expect(await patient(name)).toEqual(addresses);
});

test('addresses of one family are returned although the server never answers for the other family', async () => {
  expect(await lookup('half.test')).toEqual(['192.0.2.9']);
});

test.each([
  ['missing.test', 'ENOTFOUND'],
  ['none.test', 'ENODATA'],
])('%s fails with %s', async (name, code) => {
  expect(errorCode(await patient(name).catch((error: unknown) => error))).toBe(code);
});

test('silent.test fails with ETIMEOUT', async () => {
  expect(errorCode(await lookup('silent.test').catch((error: unknown) => error))).toBe('ETIMEOUT');
});

test('names that never resolve do not delay other names', async () => {
  const waiting = Array.from({ length: 50 }, () => patient('held.test').catch(errorCode));
  const first = await Promise.race([patient('both.test'), ...waiting]);
  expect(first).toContain('192.0.2.1');
  held.resolve('NXDOMAIN');
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['ENOTFOUND']));
});

test('a hosts file that changed is read again', async () => {
  const path = join(folder, 'changing');
  const changing = nameLookup({ servers: [server.address], hostsFile: path, patience: PATIENCE });
  writeFileSync(path, '10.0.0.1 name.internal\n');
  expect(await changing('name.internal')).toEqual(['10.0.0.1']);
  rmSync(path);
  expect(errorCode(await changing('name.internal').catch((error: unknown) => error))).toBe('ENOTFOUND');
});
