import { parseNetworks } from '@inference-proxy/egress';
import { expect, test } from '@jest/globals';
import { type ForwardingRules, forwardedHeaders } from './forwarded-headers.ts';

const RULES: ForwardingRules = { trustedProxies: [], forwardAuth: false, prefix: '/v4/acme/site' };

/** Returns the headers that reach the server. Like Node, it joins repeated headers in `headers`. */
function sent(rawHeaders: string[], rules: Partial<ForwardingRules> = {}, remoteAddress = '::ffff:203.0.113.7') {
  const headers: Record<string, string> = { host: 'api.example.com' };
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = String(rawHeaders[at]).toLowerCase();
    headers[name] =
      headers[name] === undefined ? String(rawHeaders[at + 1]) : `${headers[name]}, ${rawHeaders[at + 1]}`;
  }
  return forwardedHeaders({ rawHeaders, headers, socket: { remoteAddress } }, { ...RULES, ...rules });
}

const WHERE = [
  ['X-Forwarded-For', '203.0.113.7'],
  ['X-Forwarded-Proto', 'http'],
  ['X-Forwarded-Host', 'api.example.com'],
  ['X-Forwarded-Prefix', '/v4/acme/site'],
];

test('headers reach the server in their order and spelling, also repeated headers', () => {
  const raw = ['Cookie', 'a=1', 'X-Own', 'one', 'accept', 'text/html', 'X-OWN', 'two', 'Idempotency-Key', 'k'];
  expect(sent(raw)).toEqual([
    ['Cookie', 'a=1'],
    ['X-Own', 'one'],
    ['accept', 'text/html'],
    ['X-OWN', 'two'],
    ['Idempotency-Key', 'k'],
    ...WHERE,
  ]);
});

test.each([
  'Host',
  'Content-Length',
  'Transfer-Encoding',
  'TE',
  'Trailer',
  'Keep-Alive',
  'Proxy-Connection',
  'Proxy-Authorization',
  'Upgrade',
  'Expect',
  'Accept-Encoding',
  'Authorization',
  'X-Webhook-Secret',
  'X-Request-Id',
  'traceparent',
  'Forwarded',
])('%s is withheld', (name) => {
  const names = sent([name, 'x', name.toUpperCase(), 'y']).map(([each]) => each);
  expect(names).toEqual(WHERE.map(([each]) => each));
});

test('headers that `Connection` names are withheld', () => {
  expect(sent(['Connection', 'close, X-Hop', 'x-hop', '1', 'x-end', '2'])).toEqual([['x-end', '2'], ...WHERE]);
});

test('the token reaches a server with `forward_auth`', () => {
  expect(sent(['Authorization', 'Bearer x'], { forwardAuth: true })).toEqual([['Authorization', 'Bearer x'], ...WHERE]);
});

test.each([
  ['respond-async, wait=5', []],
  ['return=minimal; foo="a, b", wait=5', [['Prefer', 'return=minimal; foo="a, b"']]],
  ['handling=lenient', [['Prefer', 'handling=lenient']]],
])('of `Prefer: %s`, the preferences that the gateway follows are withheld', (value, kept) => {
  expect(sent(['Prefer', value])).toEqual([...kept, ...WHERE]);
});

test('`X-Forwarded-*` headers of a caller are ignored', () => {
  expect(sent(['X-Forwarded-For', '127.0.0.1', 'X-Forwarded-Proto', 'https', 'x-forwarded-prefix', '/x'])).toEqual(
    WHERE,
  );
});

test('`X-Forwarded-*` headers of a trusted proxy are kept and extended', () => {
  const raw = ['X-Forwarded-For', '198.51.100.1', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'www.example.com'];
  const trustedProxies = parseNetworks('203.0.113.0/24');
  expect(sent(raw, { trustedProxies })).toEqual([
    ['X-Forwarded-For', '198.51.100.1, 203.0.113.7'],
    ['X-Forwarded-Proto', 'https'],
    ['X-Forwarded-Host', 'www.example.com'],
    ['X-Forwarded-Prefix', '/v4/acme/site'],
  ]);
});
