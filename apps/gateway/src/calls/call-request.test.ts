import { ServiceError } from '@inference-proxy/contracts';
import { AddressPolicy, WebhookUrls } from '@inference-proxy/egress';
import { describe, expect, test } from '@jest/globals';
import { accepts, type RequestHead } from '../http/request-head.ts';
import { callRequest } from './call-request.ts';
import { idempotencyOf } from './idempotency.ts';

const policy = new AddressPolicy();
const path = { project: 'acme', app: 'chat', function: 'run' };

function read(query: string, headers: Record<string, string> = {}, rawHeaders?: string[], more = {}) {
  const head: RequestHead = {
    method: 'POST',
    url: `/v4/acme/chat/run${query}`,
    headers,
    rawHeaders: rawHeaders ?? Object.entries(headers).flat(),
  };
  return callRequest('0199', path, head, new WebhookUrls({ policy, ...more }));
}

function refusal(...args: Parameters<typeof read>): string {
  try {
    read(...args);
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
  return 'accepted';
}

describe('Accept asks for a stream', () => {
  test.each([
    ['text/event-stream', true],
    ['text/event-stream, application/json', true],
    ['application/json, text/event-stream;q=0.1', true],
    ['Text/Event-Stream; charset=utf-8', true],
    ['text/event-stream;q=0', false],
    ['text/event-stream; q=0.000', false],
    ['text/event-streams', false],
    ['*/*', false],
    ['text/*', false],
    ['application/json', false],
    ['', false],
  ])('%j: %p', (accept, stream) => {
    expect(read('', { accept }).stream).toBe(stream);
  });
});

describe('Accept-Encoding allows gzip', () => {
  test.each([
    ['gzip', true],
    ['gzip, deflate, br', true],
    ['x-gzip', true],
    ['*', true],
    ['br;q=1, gzip;q=0.001', true],
    ['gzip;q=0', false],
    ['gzip;q=0, *', false],
    ['*;q=0', false],
    ['identity', false],
    ['deflate, br', false],
  ])('%j: %p', (encoding, gzip) => {
    expect(read('', { 'accept-encoding': encoding }).gzip).toBe(gzip);
  });

  test('no header allows nothing', () => {
    expect(accepts(undefined, ['gzip'])).toBe(false);
  });
});

describe('a body must be JSON', () => {
  const body = { 'content-length': '2' };
  test.each([
    ['application/json', 'accepted'],
    ['application/json; charset=utf-8', 'accepted'],
    ['APPLICATION/JSON ;x=y', 'accepted'],
    ['application/jsonp', 'unsupported_media_type'],
    ['text/plain', 'unsupported_media_type'],
    ['multipart/form-data; boundary=x', 'unsupported_media_type'],
    ['', 'unsupported_media_type'],
    ['/', 'unsupported_media_type'],
  ])('%j: %s', (type, verdict) => {
    expect(refusal('', { ...body, 'content-type': type })).toBe(verdict);
  });

  test('a body without a type, also of unknown length, and a compressed body are rejected', () => {
    expect(refusal('', { 'transfer-encoding': 'chunked' })).toBe('unsupported_media_type');
    expect(refusal('', body)).toBe('unsupported_media_type');
    const json = { ...body, 'content-type': 'application/json' };
    expect(refusal('', { ...json, 'content-encoding': 'gzip' })).toBe('unsupported_media_type');
    expect(refusal('', { ...json, 'content-encoding': 'identity' })).toBe('accepted');
  });

  test('no body needs no type', () => {
    expect(refusal('', { 'content-length': '0', 'content-type': 'text/plain' })).toBe('accepted');
  });
});

describe('how long a caller waits', () => {
  test.each([
    ['', {}, undefined, undefined],
    ['?async=true', {}, 0, undefined],
    ['?x=1&async=true', {}, 0, undefined],
    ['?async=false', {}, undefined, undefined],
    ['?notasync=true', {}, undefined, undefined],
    ['', { prefer: 'respond-async' }, 0, 'respond-async'],
    ['?async=false', { prefer: 'respond-async' }, 0, 'respond-async'],
    ['', { prefer: 'wait=10' }, 10_000, 'wait=10'],
    ['', { prefer: 'wait=0' }, 0, 'wait=0'],
    ['', { prefer: 'wait=999999999' }, 2 ** 31 - 1, 'wait=999999999'],
    ['', { prefer: 'Respond-Async; x=1, wait=10' }, 10_000, 'respond-async, wait=10'],
    ['?async=true', { prefer: 'wait=10' }, 0, undefined],
    ['?async=true', { prefer: 'respond-async, wait=10' }, 0, 'respond-async'],
    ['', { prefer: 'wait=soon' }, undefined, undefined],
    ['', { prefer: 'handling=lenient' }, undefined, undefined],
  ])('%j %j: %p ms, applied %j', (query, headers, waitMs, preferenceApplied) => {
    const call = read(query, { ...headers });
    expect(call.waitMs).toBe(waitMs);
    expect(call.preferenceApplied).toBe(preferenceApplied);
    expect(call.promised).toBe(waitMs !== undefined);
  });

  test.each(['?async', '?async=', '?async=1', '?async=True', '?async=true&async=true'])('%j is rejected', (query) => {
    expect(refusal(query)).toBe('invalid_request');
  });
});

describe('when the last reader has disconnected', () => {
  const hook = `webhookEndpoint=${encodeURIComponent('https://example.com/')}`;
  const keyed = { 'idempotency-key': 'k' };
  test.each([
    ['', {}, 0, false],
    ['?onDisconnect=cancel', {}, 0, false],
    ['?onDisconnect=0', {}, 0, false],
    ['?onDisconnect=continue', {}, undefined, true],
    ['?onDisconnect=30', {}, 30_000, true],
    ['?onDisconnect=0.25', {}, 250, true],
    ['?async=true', {}, undefined, true],
    ['?async=true&onDisconnect=cancel', {}, undefined, true],
    ['?async=true&onDisconnect=30', {}, 30_000, true],
    ['', { prefer: 'wait=5' }, undefined, true],
    ['?onDisconnect=cancel', { prefer: 'wait=5' }, 0, true],
    [`?${hook}`, {}, undefined, true],
    [`?${hook}&onDisconnect=cancel`, {}, 0, true],
    ['', keyed, undefined, true],
    ['?onDisconnect=cancel', keyed, 0, true],
    ['?notOnDisconnect=30', {}, 0, false],
  ])('%j %j: cancelled after %p ms, promised %p', (query, headers, absentMs, promised) => {
    expect(read(query, { ...headers })).toMatchObject({ promised, ...(absentMs !== undefined && { absentMs }) });
    expect('absentMs' in read(query, { ...headers })).toBe(absentMs !== undefined);
  });

  test.each(['', '=', '=Cancel', '=-1', '=1e3', '=9999999999', '=1.2345', '=5s', '=5&onDisconnect=5'])(
    '?onDisconnect%s is rejected',
    (rest) => {
      expect(refusal(`?onDisconnect${rest}`)).toBe('invalid_request');
    },
  );
});

describe('an idempotency key', () => {
  test.each(['k', '"quoted, with a comma"', 'a key', 'é', 'x'.repeat(255)])('%j is accepted unchanged', (key) => {
    expect(read('', { 'idempotency-key': key }).idempotencyKey).toBe(key);
  });

  test.each(['', '  ', '\t', 'x'.repeat(256)])('%j is rejected', (key) => {
    expect(refusal('', { 'idempotency-key': key })).toBe('invalid_request');
  });

  test('a repeated key is rejected, although Node joins repeated headers', () => {
    const raw = ['Idempotency-Key', 'a', 'IDEMPOTENCY-KEY', 'a'];
    expect(refusal('', { 'idempotency-key': 'a, a' }, raw)).toBe('invalid_request');
  });

  const hashes = (query: string, body: string, more: object = {}) =>
    idempotencyOf({ ...read(query, { 'idempotency-key': 'k' }), ...more }, 'k', Buffer.from(body));
  const hook = (url: string): string => `?webhookEndpoint=${encodeURIComponent(url)}`;

  test('a key belongs to a project, an app and a function', () => {
    const { key } = hashes('', '{}');
    expect(hashes('?async=true', '{"a":1}').key).toBe(key);
    for (const other of [{ project: 'b' }, { app: 'b' }, { fn: 'b' }, { app: 'acme', project: 'chat' }])
      expect(hashes('', '{}', other).key).not.toBe(key);
    expect(key).not.toContain('k\0');
  });

  test('the fingerprint covers method, path, body and webhook', () => {
    const { fingerprint } = hashes('', '{}');
    for (const query of ['?async=true', '?onDisconnect=5', '?ids=true'])
      expect(hashes(query, '{}').fingerprint).toBe(fingerprint);
    const others = [
      hashes('', '{ }'),
      hashes('', '{"a":1}'),
      hashes('', '{}', { method: 'PUT' }),
      hashes('', '{}', { path: '/v4/acme/chat/run/more' }),
      hashes(hook('https://example.com/a'), '{}'),
      hashes(hook('https://example.com/b'), '{}'),
    ].map((other) => other.fingerprint);
    expect(new Set([fingerprint, ...others]).size).toBe(7);
  });
});

describe('a webhook', () => {
  const hook = `?webhookEndpoint=${encodeURIComponent('https://example.com/hook?a=b&c=d')}`;

  test('a plain http URL is rejected if WEBHOOK_REQUIRE_HTTPS is set', () => {
    const plain = `?webhookEndpoint=${encodeURIComponent('http://example.com/')}`;
    expect(refusal(plain)).toBe('accepted');
    expect(refusal(plain, {}, undefined, { requireHttps: true })).toBe('invalid_request');
    expect(refusal(hook, {}, undefined, { requireHttps: true })).toBe('accepted');
  });

  test('the URL keeps its query, and the secret keeps its bytes', () => {
    // The UTF-8 bytes of é in a header, as Node returns them.
    const secret = Buffer.from('sécret').toString('latin1');
    const { webhook } = read(hook, {}, ['X-Webhook-Secret', secret]);
    expect(webhook?.url).toBe('https://example.com/hook?a=b&c=d');
    expect(webhook?.secret).toEqual(Buffer.from('sécret'));
    expect(read(hook).webhook).toEqual({ url: 'https://example.com/hook?a=b&c=d' });
  });

  test.each([
    '?webhookEndpoint=',
    '?webhookEndpoint',
    '?webhookEndpoint=ftp://example.com',
    '?webhookEndpoint=/hook',
    '?webhookEndpoint=http://127.0.0.1/',
    '?webhookEndpoint=http://2130706433/',
    '?webhookEndpoint=http://[::ffff:10.0.0.1]/',
    '?webhookEndpoint=http://user:pass@example.com/',
    `${hook}&webhookEndpoint=https://example.com/`,
    '?webhookEndpoint=%ff',
  ])('%j is rejected', (query) => {
    expect(refusal(query)).toBe('invalid_request');
  });

  test('an empty, blank or repeated secret is rejected', () => {
    expect(refusal(hook, {}, ['x-webhook-secret', ''])).toBe('invalid_request');
    expect(refusal(hook, {}, ['X-WEBHOOK-SECRET', ' \t '])).toBe('invalid_request');
    expect(refusal(hook, {}, ['X-Webhook-Secret', 'a', 'x-webhook-secret', 'a'])).toBe('invalid_request');
    // The position decides whether a text is a header's name or its value.
    expect(read(hook, {}, ['x-other', 'x-webhook-secret', 'accept', 'b']).webhook?.secret).toBeUndefined();
  });

  test('a secret without a webhook is ignored', () => {
    expect(refusal('', {}, ['x-webhook-secret', ''])).toBe('accepted');
  });
});
