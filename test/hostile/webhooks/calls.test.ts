// Contract 4: hostile webhook URLs, answers, results and secrets, over the whole stack, from the bytes of a call to the bytes at the receiver.
import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import type { Caller } from '../../client/caller.ts';
import { errorOf } from '../../client/http.ts';
import { until } from '../../client/until.ts';
import { type Receiver, type Request, receiver } from '../../receiver/receivers.ts';
import type { TestStack } from '../../stack/test-stack.ts';
import { deliveryThat, hostileStack, settled, to } from './receiving.ts';

let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  ({ stack, caller } = await hostileStack());
});
afterAll(() => stack.stop());

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});
async function standing<R extends Receiver>(made: Promise<R>): Promise<R> {
  const one = await made;
  cleanups.push(() => one.close());
  return one;
}
const taking = () => standing(receiver(() => ({ status: 204 })));
const nth = ({ requests }: { requests: Request[] }, n: number): Promise<Request> => until(() => requests[n - 1]);
const runIdOf = ({ headers }: { headers: Record<string, unknown> }): string => String(headers['x-request-id']);

/** Sends a request line and headers without encoding them. Resolves with the status. */
function raw(target: string, headers: readonly string[] = []): Promise<number> {
  return new Promise((resolve, reject) => {
    const bearer = signToken(stack.jwtSecret, { project: 'demo', ttlS: 3600 });
    const lines = [`POST ${target} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${bearer}`, ...headers];
    const socket = connect(stack.port, '127.0.0.1', () => {
      socket.write(
        `${lines.join('\r\n')}\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"value":1}`,
        'latin1',
      );
    });
    socket.on('error', reject).once('data', (head) => {
      resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(head.toString('latin1'))?.[1]));
      socket.destroy();
    });
  });
}

const PATH = '/v4/demo/hooks/value';

// All forbidden addresses but loopback, to which a development stack may deliver. packages/egress tests every form of every block.
const forbidden = [
  'http://10.0.0.1/',
  'http://167772161/',
  'http://0x0a000001/',
  'http://012.0.0.1/',
  'http://10.1/',
  'http://[::ffff:10.0.0.1]/',
  'http://[::ffff:a00:1]/',
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/',
  'http://192.168.1.1./',
  'http://⑩.0.0.1/',
  'http://１０.0.0.1/',
  'http://[fd00::1]/',
  'http://[fe80::1]/',
  'http://[64:ff9b::10.0.0.1]/',
  'http://[2002:a00:1::]/',
  'http://0.0.0.0/',
  'http://[::]/',
  'http://user:secret@example.com/',
  'http://example.com:0/',
  'http://example.com:22/',
  'http://example.com:25/',
  'http://example.com:99999/',
  'http:///hook',
  'http://exa\tmple.com/',
  'http://example.com/a\nb',
  ' http://example.com/',
  `http://example.com/${'a'.repeat(8192)}`,
  'ftp://example.com/',
  'file:///etc/passwd',
  '//example.com/',
  'example.com',
  '',
];

async function newestRun(): Promise<string | undefined> {
  const { text } = await caller.request('/v4/demo/runs?limit=1', { method: 'GET' });
  return (JSON.parse(text) as { runs: { run_id: string }[] }).runs[0]?.run_id;
}

test.each(forbidden)('a call with the webhook %j is rejected before a run is stored', async (url) => {
  const before = await newestRun();
  const answer = await caller.call('hooks/value', { value: 1 }, to(url));
  expect([answer.status, errorOf(answer).code]).toEqual([400, 'invalid_request']);
  expect(await newestRun()).toBe(before);
});

test.each([
  ['doubled', `${PATH}?webhookEndpoint=http://example.com/&webhookEndpoint=http://example.com/`, 400],
  ['with a raw tab', `${PATH}?webhookEndpoint=http://exa\tmple.com/`, 400],
  ['with a raw space', `${PATH}?webhookEndpoint=http://example.com/a b`, 400],
  ['not UTF-8', `${PATH}?webhookEndpoint=http://example.com/%ff`, 400],
])('a target whose parameter is %s is rejected', async (_name, target, status) => {
  expect(await raw(target)).toBe(status);
});

test('an unencoded & ends the parameter, and an unencoded # ends the target; upper case, IDN and fragments are parsed as in URLs', async () => {
  const sink = await taking();
  const address = `127.0.0.1:${sink.port}`;
  expect(await raw(`${PATH}?webhookEndpoint=http://${address}/hook?a=1&b=2`)).toBe(200);
  expect((await nth(sink, 1)).path).toBe('/hook?a=1');
  expect(await raw(`${PATH}?webhookEndpoint=http://${address}/x#fragment`)).toBe(200);
  expect((await nth(sink, 2)).path).toBe('/x');
  await caller.call('hooks/value', { value: 1 }, to(`HTTP://LOCALHOST:${sink.port}/Case?q=ü#fragment`));
  const third = await nth(sink, 3);
  expect(third.path).toBe('/Case?q=%C3%BC');
  expect(third.headers.host).toBe(`localhost:${sink.port}`);
});

test.each<[number, Record<string, string>, 'delivered' | 'failed', number, string | undefined]>([
  [200, {}, 'delivered', 1, undefined],
  [202, {}, 'delivered', 1, undefined],
  [301, { location: '/again' }, 'failed', 6, 'redirect'],
  [302, { location: 'http://10.0.0.1/' }, 'failed', 6, 'redirect'],
  [307, { location: '/hook' }, 'failed', 6, 'redirect'],
  [401, {}, 'failed', 4, undefined],
  [404, {}, 'failed', 6, undefined],
  [409, {}, 'failed', 4, undefined],
  [410, {}, 'failed', 1, undefined],
  [413, {}, 'failed', 4, undefined],
  [429, { 'retry-after': '-5' }, 'failed', 6, undefined],
  [429, { 'retry-after': 'soon' }, 'failed', 6, undefined],
  [503, { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 'failed', 6, undefined],
  [500, {}, 'failed', 6, undefined],
])('a receiver that answers %i %j', async (status, headers, end, attempts, error) => {
  const sink = await standing(receiver(() => ({ status, headers })));
  const answer = await caller.call('hooks/value', { value: 1 }, to(sink.url));
  const delivery = await settled(caller, runIdOf(answer));
  expect(delivery).toMatchObject({ status: end, attempts });
  expect(sink.requests).toHaveLength(attempts);
  expect(new Set(delivery.log.map((one) => one.status))).toEqual(new Set([status]));
  expect(delivery.log[0]?.error).toBe(error);
  if (headers.location) expect(delivery.log[0]?.location).toBe(headers.location);
  expect(delivery.log[0]).toMatchObject({ address: '127.0.0.1' });
});

test.each([
  ['1', 1000],
  [new Date(Date.now() + 7_200_000).toUTCString(), 3_600_000],
  ['315360000', 86_300_000],
])('a Retry-After of %s delays the next attempt, by at most a day', async (value, least) => {
  const sink = await standing(
    receiver((_, count) => ({ status: count === 1 ? 503 : 204, headers: { 'retry-after': value } })),
  );
  const answer = await caller.call('hooks/value', { value: 1 }, to(sink.url));
  const { log } = await deliveryThat(caller, runIdOf(answer), ({ attempts }) => attempts > 0);
  const inMs = Date.parse(log[0]?.next_attempt_at ?? '') - Date.parse(log[0]?.at ?? '');
  expect(inMs).toBeGreaterThanOrEqual(least);
  expect(inMs).toBeLessThan(86_400_000 + 5000);
  if (least === 1000)
    expect(await settled(caller, runIdOf(answer))).toMatchObject({ status: 'delivered', attempts: 2 });
});

function expectSigned(request: Request, secret: Buffer): void {
  const timestamp = String(request.headers['x-service-webhook-timestamp']);
  const signed = createHmac('sha256', secret)
    .update(`${request.headers['x-request-id']}.${timestamp}.`)
    .update(request.body)
    .digest('hex');
  expect(request.headers['x-service-webhook-signature']).toBe(`v1,${signed}`);
}

test.each<[string, string]>([
  ['line separators', '{"value":"a\\u2028b\\u2029c"}'],
  ['raw line separators', '{"value":"a\u2028b"}'],
  ['NUL', '{"value":"a\\u0000b"}'],
  ['emoji and scripts', '{"value":"🚀 東京 \u0301e ﷽"}'],
  ['a lone surrogate', '{"value":"\\ud800"}'],
  ['numbers at their limits', '{"value":[12345678901234567890,1.0,1e400,-0.0]}'],
  ['a value that looks like an envelope', '{"value":{"run_id":"x","status":"failed","error":{"code":"internal"}}}'],
  ['the value null', '{"value":null}'],
])('a result with %s: the signed, the delivered and the answered bytes are the same', async (_name, body) => {
  const sink = await taking();
  const answer = await caller.call('hooks/value', body, to(sink.url, 'key'));
  const request = await nth(sink, 1);
  expect(request.body.toString()).toBe(answer.text);
  expectSigned(request, Buffer.from('key'));
});

test('a result of 6 MB arrives whole', async () => {
  const sink = await taking();
  const answer = await caller.call('hooks/large', { n: 6_000_000 }, to(sink.url, 'key'));
  const request = await nth(sink, 1);
  expect(answer.text.length).toBeGreaterThan(6_000_000);
  expect(request.body.equals(Buffer.from(answer.text))).toBe(true);
  expectSigned(request, Buffer.from('key'));
});

test('runs that failed, were cancelled, timed out or expired are delivered with that status', async () => {
  const sink = await taking();
  const failed = await caller.call('hooks/raises', {}, to(sink.url));
  expect((await nth(sink, 1)).body.toString()).toBe(failed.text);
  const begun = async (fn: string, seconds: number): Promise<string> => {
    const { text } = await caller.call(fn, { seconds }, to(sink.url, undefined, '&async=true'));
    return JSON.parse(text).run_id as string;
  };
  const timedOut = await begun('hasty/sleeps', 600);
  // The second run of `narrow` waits behind this run and expires. Then this run is cancelled.
  const cancelled = await begun('narrow/sleeps', 600);
  await until(async () => (await caller.lookUp(cancelled)).status === 'running');
  const expired = await begun('narrow/sleeps', 0);
  await nth(sink, 3);
  expect((await caller.cancel(cancelled)).status).toBe(202);
  await nth(sink, 4);
  const bodies = new Map(
    sink.requests.map(({ body }) => JSON.parse(body.toString())).map((body) => [body.run_id, body]),
  );
  for (const [id, status] of Object.entries({
    [timedOut]: 'timed_out',
    [expired]: 'expired',
    [cancelled]: 'cancelled',
  }))
    expect(bodies.get(id)).toMatchObject({ status, error: { code: status } });
});

test.each<[string, Buffer]>([
  ['one byte', Buffer.from('k')],
  ['2,000 characters', Buffer.alloc(2000, 'x')],
  ['raw UTF-8 bytes', Buffer.from('пароль-🔑')],
  ['bytes that are not UTF-8', Buffer.from([0xff, 0xfe, 0x80])],
  ['whsec_ with bad base64', Buffer.from('whsec_!not base64!')],
  ['whsec_ alone', Buffer.from('whsec_')],
  ['a comma', Buffer.from('a,b')],
  ['a dot', Buffer.from('a.b')],
])('a secret of %s signs in both schemes', async (_name, secret) => {
  const sink = await taking();
  await caller.call('hooks/value', { value: 1 }, to(sink.url, secret));
  const request = await nth(sink, 1);
  expectSigned(request, secret);
  new Webhook(secret, { format: 'raw' }).verify(request.body, request.headers as Record<string, string>);
});

test.each<[string, readonly string[]]>([
  ['empty', ['X-Webhook-Secret: ']],
  ['only spaces', ['X-Webhook-Secret:    ']],
  ['doubled', ['X-Webhook-Secret: a', 'X-Webhook-Secret: a']],
])('a secret that is %s is rejected', async (_name, headers) => {
  expect(await raw(`${PATH}?webhookEndpoint=http://example.com/`, headers)).toBe(400);
});
