// Contract 4, "Allowed addresses": the values of `webhookEndpoint` that a call may contain.

import { ServiceError } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import { AddressPolicy, parseNetworks } from './address-policy.ts';
import { judgeWebhookUrl, MAX_WEBHOOK_URL_BYTES, WebhookUrls, webhookEndpointOf } from './webhook-url.ts';

const policy = new AddressPolicy();
const judge = (text: string) => judgeWebhookUrl(text, { policy });
const refusal = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'invalid_request') return error.message;
    throw error;
  }
  throw new Error('was not refused');
};

test.each([
  ['https://example.com/hook?a=1&b=%20x', 'https://example.com/hook?a=1&b=%20x'],
  ['HTTPS://EXAMPLE.COM/Hook', 'https://example.com/Hook'],
  ['https://example.com:443', 'https://example.com/'],
  ['https://example.com:8443/', 'https://example.com:8443/'],
  ['https://example.com./x', 'https://example.com./x'],
  ['https://bücher.example/ü', 'https://xn--bcher-kva.example/%C3%BC'],
  ['https://example.com/a#fragment', 'https://example.com/a'],
  ['https://1.1.1.1/', 'https://1.1.1.1/'],
  ['https://[2606:4700::1111]:8080/', 'https://[2606:4700::1111]:8080/'],
  ['http://example.com/a/../b', 'http://example.com/b'],
])('%s is accepted and stored as %s', (text, expected) => {
  expect(judge(text)).toBe(expected);
});

// Every IPv4 block of the table, in every form that the URL standard reads as an address.
const blocks = [
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '127.0.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
];
const spellings = blocks.flatMap((dotted) => {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  const value = ((a * 256 + b) * 256 + c) * 256 + d;
  const fullwidth = dotted.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
  return [
    dotted,
    `${dotted}.`,
    `${value}`,
    `0x${value.toString(16)}`,
    `0${value.toString(8)}`,
    [a, b, c, d].map((part) => `0x${part.toString(16)}`).join('.'),
    [a, b, c, d].map((part) => `0${part.toString(8)}`).join('.'),
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    fullwidth,
    dotted.replaceAll('.', '。'),
    dotted.replace('.', '%2e'),
    `[::ffff:${dotted}]`,
    `[::ffff:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}]`,
    `[::${dotted}]`,
    `[64:ff9b::${dotted}]`,
    `[64:ff9b:1::${dotted}]`,
    `[2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::]`,
    `[0:0:0:0:0:FFFF:${dotted}]`,
  ];
});

test.each([
  ...spellings,
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[100::1]',
  '[2001::1]',
  '[2001:db8::1]',
  '[fc00::1]',
  '[fd12::1]',
  '[fe80::1]',
  '[fec0::1]',
  '[ff02::1]',
  '①②⑦.0.0.1',
  '127.1',
  '0',
  '0x7f.1',
  'localhost',
  'LOCALHOST.',
  'api.localhost',
])('the host %s is rejected because its address is not public', (host) => {
  for (const url of [`http://${host}/`, `https://${host}:8443/hook`]) {
    expect(refusal(() => judge(url))).toMatch(
      /must be a public address; .* is .+\. An operator can allow its network with WEBHOOK_ALLOWED_NETWORKS\.$/,
    );
  }
});

test.each([
  ['credentials', 'https://user:pw@example.com/', 'must not hold credentials'],
  ['a user name', 'https://user@example.com/', 'must not hold credentials'],
  ['another scheme', 'ftp://example.com/', 'must be an http or https URL'],
  ['a file', 'file:///etc/passwd', 'must be an http or https URL'],
  ['a script', 'javascript:alert(1)', 'must be an absolute URL'],
  ['no scheme', 'example.com/hook', 'must be an absolute URL'],
  ['one slash', 'http:/example.com', 'must be an absolute URL'],
  ['a scheme-relative form', '//example.com/hook', 'must be an absolute URL'],
  ['an empty host', 'http:///', 'is not a valid URL'],
  ['an empty host and a path', 'http:///hook', 'has no usable host'],
  ['a backslash for a host', 'http://\\example.com/', 'has no usable host'],
  ['an empty host and a port', 'http://:80/', 'is not a valid URL'],
  ['a host of one dot', 'http://./', 'has no usable host'],
  ['a host of 300 characters', `http://${'a.'.repeat(150)}com/`, 'has no usable host'],
  ['port 0', 'http://example.com:0/', 'must not use port 0'],
  ['port 22', 'http://example.com:22/', 'must not use port 22'],
  ['port 25', 'http://example.com:25/', 'must not use port 25'],
  ['port 6667', 'http://example.com:6667/', 'must not use port 6667'],
  ['port 99999', 'http://example.com:99999/', 'is not a valid URL'],
  ['a tab inside', 'http://exa\tmple.com/', 'a control character'],
  ['a newline inside', 'http://example.com/a\nb', 'a control character'],
  ['a NUL', 'http://example.com/\0', 'a control character'],
  ['a space inside', 'http://example.com/a b', 'holds a space'],
  ['a space before', ' http://example.com/', 'holds a space'],
  ['half a bracket', 'http://[::1/', 'is not a valid URL'],
  ['a zone id', 'http://[fe80::1%25lo]/', 'is not a valid URL'],
  ['five parts', 'http://1.2.3.4.5/', 'is not a valid URL'],
  ['over 8 KiB', `http://example.com/${'a'.repeat(MAX_WEBHOOK_URL_BYTES)}`, 'is longer than 8192 bytes'],
  ['over 8 KiB once encoded', `http://example.com/${'ü'.repeat(3000)}`, 'is longer than 8192 bytes'],
])('a URL with %s is rejected', (_name, text, why) => {
  expect(refusal(() => judge(text))).toContain(why);
});

test('a URL of exactly 8 KiB is accepted', () => {
  const text = 'http://example.com/'.padEnd(MAX_WEBHOOK_URL_BYTES, 'a');
  expect(judge(text)).toBe(text);
});

test('if https is required, http is rejected', () => {
  expect(refusal(() => judgeWebhookUrl('http://example.com/', { policy, requireHttps: true }))).toContain(
    'must be an https URL',
  );
  expect(judgeWebhookUrl('https://example.com/', { policy, requireHttps: true })).toBe('https://example.com/');
});

test('literal addresses of an allowed network are accepted', () => {
  const open = new AddressPolicy(parseNetworks('127.0.0.0/8,::1/128'));
  expect(judgeWebhookUrl('http://127.1:9000/', { policy: open })).toBe('http://127.0.0.1:9000/');
  expect(judgeWebhookUrl('http://localhost:9000/', { policy: open })).toBe('http://localhost:9000/');
});

test.each([
  ['', undefined],
  ['async=true', undefined],
  ['webhookendpoint=http://a', undefined],
  ['webhookEndpoint=https%3A%2F%2Fexample.com%2F%3Fa%3D1%26b%3D2', 'https://example.com/?a=1&b=2'],
  ['a=1&webhookEndpoint=https://example.com/?x=y&b=2', 'https://example.com/?x=y'],
  ['%77ebhookEndpoint=http://a', 'http://a'],
  ['webhookEndpoint=http://a/%C3%BC', 'http://a/ü'],
  ['webhookEndpoint=http://a/x+y', 'http://a/x y'],
  ['%zz=1&webhookEndpoint=http://a', 'http://a'],
])('the query "%s" names the webhook %s', (query, expected) => {
  expect(webhookEndpointOf(query)).toBe(expected);
});

test.each([
  ['doubled', 'webhookEndpoint=http://a&webhookEndpoint=http://a', 'is given more than once'],
  ['doubled under another spelling', 'webhookEndpoint=http://a&webhook%45ndpoint=http://b', 'is given more than once'],
  ['empty', 'webhookEndpoint=', 'is empty'],
  ['without a value', 'webhookEndpoint', 'is empty'],
  ['badly encoded', 'webhookEndpoint=%zz', 'is not percent-encoded UTF-8'],
  ['encoded, but not UTF-8', 'webhookEndpoint=http://a/%ff', 'is not percent-encoded UTF-8'],
])('a parameter that is %s is rejected', (_name, query, why) => {
  expect(refusal(() => webhookEndpointOf(query))).toContain(why);
});

test('a repeated URL gets the same result, accepted or rejected', () => {
  const urls = new WebhookUrls({ policy });
  const asked = (endpoint: string) => urls.asked(`webhookEndpoint=${encodeURIComponent(endpoint)}`);
  for (let time = 0; time < 3; time += 1) {
    expect(asked('HTTP://Example.com/#part')).toBe('http://example.com/');
    expect(urls.judge('HTTP://Example.com/#part')).toBe('http://example.com/');
    expect(urls.asked('async=true')).toBeUndefined();
    expect(refusal(() => asked('http://127.0.0.1/'))).toContain('loopback');
    expect(refusal(() => urls.judge('http://127.0.0.1/'))).toContain('loopback');
    expect(refusal(() => urls.asked('webhookEndpoint='))).toContain('is empty');
  }
});

test('thousands of different URLs are checked correctly', () => {
  const urls = new WebhookUrls({ policy });
  for (let time = 0; time < 2; time += 1) {
    for (let at = 0; at < 3000; at += 1) {
      const url = `http://r${at}.example/${'p'.repeat(at)}`;
      expect([urls.judge(url), urls.asked(`webhookEndpoint=${url}`)]).toEqual([url, url]);
    }
  }
});
