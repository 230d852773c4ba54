import { ServiceError } from '@inference-proxy/contracts';
import { AddressPolicy } from '@inference-proxy/egress';
import { describe, expect, test } from '@jest/globals';
import { accepts, callRequest, type RequestHead } from './call-request.ts';

const rules = { policy: new AddressPolicy(), requireHttps: false };
const path = { project: 'acme', app: 'chat', function: 'run' };

function read(query: string, headers: Record<string, string> = {}, rawHeaders?: string[]) {
  const head: RequestHead = {
    url: `/v4/acme/chat/run${query}`,
    headers,
    rawHeaders: rawHeaders ?? Object.entries(headers).flat(),
  };
  return callRequest('0199', path, head, rules);
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

  test('of an unknown length, without a type, or compressed, it is refused', () => {
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

describe('an answer at once', () => {
  test.each([
    ['?async=true', {}, 'query'],
    ['?x=1&async=true', {}, 'query'],
    ['?async=false', {}, false],
    ['?notasync=true', {}, false],
    ['', { prefer: 'respond-async' }, 'preference'],
    ['', { prefer: 'Respond-Async; x=1, wait=10' }, 'preference'],
    ['', { prefer: 'handling=lenient, respond-async' }, 'preference'],
    ['', { prefer: 'no-respond-async' }, false],
    ['', { prefer: 'respond-asynchronously' }, false],
  ])('%j %j: %p', (query, headers, expected) => {
    expect(read(query, { ...headers }).async).toBe(expected);
  });

  test.each(['?async', '?async=', '?async=1', '?async=True', '?async=true&async=true'])('%j means nothing', (query) => {
    expect(refusal(query)).toBe('invalid_request');
  });
});

describe('a webhook', () => {
  const hook = `?webhookEndpoint=${encodeURIComponent('https://example.com/hook?a=b&c=d')}`;

  test('keeps its query, and the secret’s bytes', () => {
    // A header that holds the UTF-8 bytes of é, as Node hands them over.
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
  ])('%j is refused', (query) => {
    expect(refusal(query)).toBe('invalid_request');
  });

  test('has one secret that says something, or none', () => {
    expect(refusal(hook, {}, ['x-webhook-secret', ''])).toBe('invalid_request');
    expect(refusal(hook, {}, ['X-WEBHOOK-SECRET', ' \t '])).toBe('invalid_request');
    expect(refusal(hook, {}, ['X-Webhook-Secret', 'a', 'x-webhook-secret', 'a'])).toBe('invalid_request');
    // Whether a value is a name or a value is told by its place.
    expect(read(hook, {}, ['x-other', 'x-webhook-secret', 'accept', 'b']).webhook?.secret).toBeUndefined();
  });

  test('is what a secret is for: without one it is ignored', () => {
    expect(refusal('', {}, ['x-webhook-secret', ''])).toBe('accepted');
  });
});
