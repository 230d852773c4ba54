// Contract 4, "Allowed addresses": the first and the last address of every rejected block.
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { AddressPolicy, parseNetworks } from './address-policy.ts';

const policy = new AddressPolicy();

test.each([
  ['0.0.0.0', '0.255.255.255'],
  ['10.0.0.0', '10.255.255.255'],
  ['100.64.0.0', '100.127.255.255'],
  ['127.0.0.0', '127.255.255.255'],
  ['169.254.0.0', '169.254.169.254'],
  ['172.16.0.0', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.255'],
  ['192.0.2.0', '192.0.2.255'],
  ['192.88.99.0', '192.88.99.255'],
  ['192.168.0.0', '192.168.255.255'],
  ['198.18.0.0', '198.19.255.255'],
  ['198.51.100.0', '198.51.100.255'],
  ['203.0.113.0', '203.0.113.255'],
  ['224.0.0.0', '239.255.255.255'],
  ['240.0.0.0', '255.255.255.255'],
  ['::', '::1'],
  ['::127.0.0.1', '::8.8.8.8'],
  ['::ffff:0:8.8.8.8', '::ffff:0:127.0.0.1'],
  ['100::', '100::ffff:ffff:ffff:ffff'],
  ['2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:2::1', '2001:10::1'],
  ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['3fff::', '3fff:fff::1'],
  ['5f00::1', '4000::1'],
  ['fc00::', 'fdff:ffff::1'],
  ['fe80::', 'febf:ffff::1'],
  ['fec0::', 'feff:ffff::1'],
  ['ff00::', 'ff02::1'],
  ['fe80::1%lo', 'fe80::1%1'],
])('%s and %s are rejected', (low, high) => {
  expect(policy.refusal(low)).toEqual(expect.any(String));
  expect(policy.refusal(high)).toEqual(expect.any(String));
});

test.each([
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700::1111',
  '2001:4860:4860::8888',
  '2a00::1',
  '3ffe::1',
])('%s is public', (address) => {
  expect(policy.refusal(address)).toBeUndefined();
});

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));

test('an IPv6 address that embeds an IPv4 address is judged by the IPv4 address, in every form', () => {
  fc.assert(
    fc.property(octets, ([a, b, c, d]) => {
      const inner = `${a}.${b}.${c}.${d}`;
      const hex = (high: number, low: number) => (high * 256 + low).toString(16);
      const expected = policy.refusal(inner);
      expect(policy.refusal(`::ffff:${inner}`)).toBe(expected);
      expect(policy.refusal(`64:ff9b::${inner}`)).toBe(expected);
      expect(policy.refusal(`64:ff9b:1::${inner}`)).toBe(expected);
      expect(policy.refusal(`2002:${hex(a, b)}:${hex(c, d)}::1`)).toBe(expected);
    }),
  );
});

test('an address of the local NAT64 block is rejected if the place of its IPv4 address is not certain', () => {
  expect(policy.refusal('64:ff9b:1:a00:1:0:808:808')).toBe('reserved');
});

test('every IPv4 address that ipaddr.js lists as special is rejected', () => {
  const special = /^(?!unicast$|as112|amt$)/;
  fc.assert(
    fc.property(octets, (bytes) => {
      const address = new ipaddr.IPv4(bytes);
      if (special.test(address.range())) expect(policy.refusal(address.toString())).toEqual(expect.any(String));
    }),
    { numRuns: 2000 },
  );
});

test('an allowed network allows its addresses and their mapped forms only', () => {
  const open = new AddressPolicy(parseNetworks('127.0.0.0/8, ::1/128,fd00:1::/32'));
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', 'fd00:1::5']) {
    expect(open.refusal(address)).toBeUndefined();
  }
  for (const address of ['10.0.0.1', '::', 'fd00:2::5', '::ffff:10.0.0.1']) {
    expect(open.refusal(address)).toEqual(expect.any(String));
  }
});

test.each(['', '  '])('an empty list of networks allows nothing', (text) => {
  expect(parseNetworks(text)).toEqual([]);
});

test.each([
  '10.0.0.0',
  '10.0.0.0/33',
  '10.0.0/8',
  '0x0a.0.0.0/8',
  '10.1.0.0/8',
  '::1/129',
  'fd00::1/8',
  'localhost/8',
  '10.0.0.0/8,',
  '10.0.0.0/8;::1/128',
  '/8',
])('the network list "%s" is rejected with an error that names the wrong part', (text) => {
  expect(() => parseNetworks(text)).toThrow(/not a CIDR block|right of its prefix/);
});
