// Contract 4, "Retries": one attempt against real receivers that misbehave.
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { AddressPolicy, type ExchangeLimits, GuardedAgent, parseNetworks } from '@inference-proxy/egress';
import { listening, type Receiver, rawAnswer, rawReceiver, receiver, refusing } from '@inference-proxy/test/receiver';
import { afterEach, expect, test } from '@jest/globals';
import { certificate } from '../testing/certificate.ts';
import { attempt, shownRecord } from './attempt.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Longer than any test, so a test with such a wait times out. */
const NEVER_MS = 600_000;
const limits: ExchangeLimits = { headMs: NEVER_MS, answerMs: NEVER_MS, answerBytes: 4096 };
const policy = new AddressPolicy(parseNetworks('127.0.0.0/8'));
const body = Buffer.from('{"result":"ok"}');

function agent(ca?: string, connectTimeoutMs = NEVER_MS): GuardedAgent {
  const made = new GuardedAgent({
    policy,
    connectTimeoutMs,
    lookup: async () => ['127.0.0.1'],
    ...(ca && { ca }),
  });
  cleanups.push(() => made.close());
  return made;
}

async function standing<R extends Receiver>(made: Promise<R>): Promise<R> {
  const one = await made;
  cleanups.push(() => one.close());
  return one;
}

const post = (url: string, with_ = agent(), bytes = body, within: Partial<ExchangeLimits> = {}) =>
  attempt(with_, new URL(url), { 'X-A': '1' }, bytes, { ...limits, ...within });

test('the record of a delivered attempt has status, time, address and the start of the answer', async () => {
  const { url, requests } = await standing(receiver(() => ({ status: 200 })));
  const before = Date.now();
  const record = await post(`${url}?a=1#not-sent`);
  expect(record).toEqual({
    at: expect.any(Number),
    durationMs: expect.any(Number),
    address: '127.0.0.1',
    status: 200,
    answer: 'answer 1',
  });
  expect(record.at).toBeGreaterThanOrEqual(before);
  expect(record.at).toBeLessThanOrEqual(Date.now());
  expect(requests).toMatchObject([{ path: '/hook?a=1', body, headers: { 'x-a': '1', 'content-length': '15' } }]);
});

test('a body of 6 MB arrives whole', async () => {
  const large = Buffer.alloc(6e6, '"\u2028🚀');
  const { url, requests } = await standing(receiver(() => ({ status: 204 })));
  expect(await post(url, agent(), large)).toMatchObject({ status: 204 });
  expect(requests[0]?.body.equals(large)).toBe(true);
});

const head = (lines: string) => `HTTP/1.1 ${lines.replaceAll('\n', '\r\n')}\r\n\r\n`;
const says = (text: string | Buffer) => rawAnswer((socket) => void socket.end(text));

test.each<[string, () => Promise<Receiver>]>([
  ['accepts and says nothing', () => rawReceiver(() => {})],
  ['reads the request and says nothing', () => rawAnswer(() => {})],
  ['never reads the request', () => rawReceiver((socket) => void socket.pause())],
  ['sends its head byte by byte', () => rawAnswer(drip(head(`200 OK\nX-Long: ${'x'.repeat(100_000)}`)))],
])('an attempt at a receiver that %s ends with its time', async (_name, make) => {
  const one = await standing(make());
  const record = await post(one.url, agent(), Buffer.alloc(3e6, 'x'), { headMs: 600 });
  expect(record).toMatchObject({ errorClass: 'timeout', message: 'no answer within 600 ms' });
  expect(record.durationMs).toBeGreaterThanOrEqual(599);
});

test.each<[string, () => Promise<Receiver>, object]>([
  [
    'sends a chunked body and stops',
    () => rawAnswer((s) => void s.write(`${head('200 OK\nTransfer-Encoding: chunked')}2\r\nhi\r\n`)),
    { status: 200, answer: 'hi' },
  ],
  [
    'sends a head and no body',
    () => rawAnswer((s) => void s.write(head('200 OK\nContent-Length: 5'))),
    { status: 200 },
  ],
])('an attempt does not wait for the rest of the answer of a receiver that %s', async (_name, make, expected) => {
  const one = await standing(make());
  const record = await post(one.url, agent(), Buffer.alloc(3e6, 'x'), { answerMs: 500 });
  expect(record).toMatchObject(expected);
  expect(record.errorClass).toBeUndefined();
});

test.each<[string, () => Promise<Receiver>, object]>([
  ['sends a head of 1 MB', () => says(head(`200 OK\nX-Large: ${'x'.repeat(1e6)}`)), { errorClass: 'bad_response' }],
  [
    'sends a head of 1 MB in many headers',
    () => says(head(`200 OK${'\nX-A: 1'.repeat(150_000)}`)),
    { errorClass: 'bad_response' },
  ],
  ['sends a body without end', () => rawAnswer(endless), { status: 200, answer: 'y'.repeat(4096) }],
  [
    'closes in the middle of its body',
    () => says(`${head('200 OK\nContent-Length: 5')}ab`),
    { status: 200, answer: 'ab' },
  ],
  [
    'resets in the middle of its body',
    () =>
      rawAnswer(
        (s) => void s.write(`${head('503 No\nContent-Length: 5')}ab`, () => setImmediate(() => s.resetAndDestroy())),
      ),
    { status: 503 },
  ],
  ['closes before reading', () => rawReceiver((socket) => void socket.destroy()), { errorClass: 'reset' }],
  ['closes after reading the request', () => rawAnswer((socket) => void socket.end()), { errorClass: 'reset' }],
  [
    'resets after reading the request',
    () => rawAnswer((socket) => void socket.resetAndDestroy()),
    { errorClass: 'reset' },
  ],
  ['closes in the middle of its head', () => says('HTTP/1.1 200 OK\r\nX-A'), { errorClass: 'reset' }],
  [
    'hints early (103) first',
    () => says(`${head('103 Early Hints\nLink: </a>')}${head('204 No Content')}`),
    { status: 204 },
  ],
  [
    'processes (102) first',
    () => says(`${head('102 Processing')}${head('200 OK\nContent-Length: 2')}ok`),
    { status: 200, answer: 'ok' },
  ],
  [
    'continues (100) without a request for it',
    () => says(`${head('100 Continue')}${head('200 OK\nContent-Length: 2')}ok`),
    { status: 200, answer: 'ok' },
  ],
  [
    'switches protocols (101) without a request for it',
    () => says(head('101 Switching Protocols\nUpgrade: x\nConnection: upgrade')),
    { errorClass: 'bad_response' },
  ],
  ['answers 204', () => says(head('204 No Content')), { status: 204 }],
  ['promises more than it sends', () => says(`${head('200 OK\nContent-Length: 50')}ok`), { status: 200, answer: 'ok' }],
  [
    'sends more than it promised',
    () => says(`${head('200 OK\nContent-Length: 2')}okay then`),
    { status: 200, answer: 'ok' },
  ],
  [
    'sends two content lengths',
    () => says(`${head('200 OK\nContent-Length: 2\nContent-Length: 5')}ok`),
    { errorClass: 'bad_response' },
  ],
  ['speaks HTTP/1.0', () => says('HTTP/1.0 200 OK\r\n\r\nold'), { status: 200, answer: 'old' }],
  ['speaks HTTP/0.9', () => says('hello'), { errorClass: 'bad_response' }],
  ['has an invalid status line', () => says('HTTP/1.1 abc\r\n\r\n'), { errorClass: 'bad_response' }],
  ['has status 99', () => says(head('99 Low')), { errorClass: 'bad_response' }],
  [
    'speaks another protocol',
    () => rawReceiver((socket) => void socket.end('220 mail.example ESMTP\r\n')),
    { errorClass: 'bad_response' },
  ],
  [
    'answers with a gzip bomb',
    () => says(Buffer.concat([Buffer.from(head('200 OK\nContent-Encoding: gzip')), gzipSync(Buffer.alloc(5e7))])),
    { status: 200 },
  ],
])('an attempt ends with the expected record if the receiver %s', async (_name, make, expected) => {
  const one = await standing(make());
  const record = await post(one.url, agent(), Buffer.alloc(3e6, 'x'));
  expect(record).toMatchObject(expected);
  expect(record.errorClass === undefined || record.message !== '').toBe(true);
  expect(Buffer.byteLength(record.answer ?? '')).toBeLessThan(3 * 4097);
});

test('an attempt at a port without a listener has the error class refused', async () => {
  const { url } = await standing(refusing());
  expect(await post(url)).toMatchObject({
    errorClass: 'refused',
    address: '127.0.0.1',
    message: 'no connection: ECONNREFUSED',
  });
});

test('an attempt at an address that the policy rejects has the error class blocked', async () => {
  expect(await post('http://10.0.0.1:8080/')).toMatchObject({ errorClass: 'blocked', address: '10.0.0.1' });
});

test('an attempt at a name without an address has the error class dns', async () => {
  const lost = new GuardedAgent({
    policy,
    lookup: () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })),
  });
  expect(await post('http://missing.test/', lost)).toMatchObject({ errorClass: 'dns' });
});

const good = certificate(['receiver.test']);
const expired = certificate(['receiver.test'], Date.now() - 1000);
const ok = head('200 OK\nContent-Length: 2\nConnection: close');
const secure =
  ({ key, cert }: { key: string; cert: string }) =>
  () =>
    listening(
      createTlsServer({ key, cert }, (socket) =>
        socket.on('error', () => {}).once('data', () => socket.end(`${ok}ok`)),
      ),
    );

test.each<[string, () => Promise<Receiver>, string | undefined, string, object]>([
  [
    'that is self-signed and trusted',
    secure(good),
    good.cert,
    'receiver.test',
    { status: 200, answer: 'ok', address: '127.0.0.1' },
  ],
  [
    'that is self-signed and not trusted',
    secure(good),
    undefined,
    'receiver.test',
    { errorClass: 'tls', message: expect.stringContaining('SELF_SIGNED') },
  ],
  [
    'that has expired',
    secure(expired),
    expired.cert,
    'receiver.test',
    { errorClass: 'tls', message: expect.stringContaining('CERT_HAS_EXPIRED') },
  ],
  [
    'for another name',
    secure(good),
    good.cert,
    'other.test',
    { errorClass: 'tls', message: expect.stringContaining('ALTNAME') },
  ],
  ['for a name, if the URL has an address', secure(good), good.cert, '127.0.0.1', { errorClass: 'tls' }],
  [
    'that is not sent because the receiver closes the connection',
    () => rawReceiver((socket) => void socket.once('data', () => socket.end())),
    good.cert,
    'receiver.test',
    { errorClass: 'tls' },
  ],
  [
    'that is not sent because the port speaks plain HTTP',
    () => listening(createServer((_, response) => void response.end('plain'))),
    good.cert,
    'receiver.test',
    { errorClass: 'tls' },
  ],
])(
  'an attempt at a TLS receiver with a certificate %s has the expected record',
  async (_name, make, ca, host, expected) => {
    const { port } = await standing(make());
    expect(await post(`https://${host}:${port}/`, agent(ca))).toMatchObject(expected);
  },
);

test('a hanging TLS handshake ends after the connect timeout', async () => {
  const { port } = await standing(rawReceiver(() => {}));
  const record = await post(`https://receiver.test:${port}/`, agent(good.cert, 2000));
  expect(record).toMatchObject({ errorClass: 'timeout', message: 'no connection within 2000 ms (TLS handshake)' });
});

test('an attempt with plain HTTP at a TLS port gets no HTTP answer', async () => {
  const { port } = await standing(secure(good)());
  expect((await post(`http://127.0.0.1:${port}/`)).errorClass).toMatch(/^(reset|bad_response)$/);
});

test.each([301, 302, 303, 307, 308])(
  'a redirect with status %i is not followed, and the record has its target',
  async (status) => {
    const aim = await standing(receiver(() => ({ status: 200 })));
    for (const location of [aim.url, 'http://10.0.0.1/private', '/hook']) {
      const { url, requests } = await standing(receiver(() => ({ status, headers: { Location: location } })));
      expect(await post(url)).toMatchObject({ status, errorClass: 'redirect', location });
      expect(requests).toHaveLength(1);
    }
    expect(aim.requests).toHaveLength(0);
  },
);

test.each([
  ['120', 120],
  [' 0 ', 0],
  [new Date(Date.now() + 86_400_000).toUTCString(), expect.closeTo(86_400, -3)],
  ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
  ['-5', undefined],
  ['soon', undefined],
  ['315360000', 315360000],
])('the record has a Retry-After of "%s" in seconds', async (header, expected) => {
  const { url } = await standing(receiver(() => ({ status: 503, headers: { 'Retry-After': header } })));
  expect((await post(url)).retryAfterS).toEqual(expected);
});

test('a connection is reused after a short answer and closed after an answer over the limit', async () => {
  const with_ = agent();
  let connections = 0;
  let length = 10;
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(Buffer.alloc(length, 'y')));
  }).on('connection', () => {
    connections += 1;
  });
  const { url } = await standing(listening(server));
  for (let i = 0; i < 3; i += 1) expect(await post(url, with_)).toMatchObject({ status: 200 });
  expect(connections).toBe(1);
  expect(with_.idle).toBe(1);
  length = 1e6;
  expect((await post(url, with_)).answer).toHaveLength(4096);
  expect(with_.idle).toBe(0);
  length = 4096;
  expect((await post(url, with_)).answer).toHaveLength(4096);
  expect(connections).toBe(2);
  expect(with_.idle).toBe(1);
});

test('an attempt is repeated on a new connection if the receiver resets the kept connection', async () => {
  const with_ = agent();
  const seen = new Map<Socket, number>();
  const server = createServer((request, response) => {
    const { socket } = request;
    seen.set(socket, (seen.get(socket) ?? 0) + 1);
    if (seen.get(socket) === 2) socket.resetAndDestroy();
    else response.end('ok');
  });
  const { url } = await standing(listening(server));
  expect(await post(url, with_)).toMatchObject({ status: 200 });
  expect(await post(url, with_)).toMatchObject({ status: 200 });
  expect([...seen.values()]).toEqual([2, 1]);
});

function drip(text: string): (socket: Socket) => void {
  return (socket) => {
    let at = 0;
    const timer = setInterval(() => {
      socket.write(text.charAt(at));
      at += 1;
    }, 100);
    socket.on('close', () => clearInterval(timer));
  };
}

function endless(socket: Socket): void {
  const more = (): void => {
    while (socket.writable && socket.write('y'.repeat(16_384))) {
      // Writes until the socket reports backpressure.
    }
  };
  socket.write(head('200 OK'));
  socket.on('drain', more);
  more();
}

test.each([
  ['https://hook.example.com/', '93.184.215.14', true],
  ['https://hook.example.com/', '2606:2800:21f::1', true],
  ['https://hook.example.com/', '10.1.2.3', false],
  ['https://hook.example.com/', '::ffff:10.1.2.3', false],
  ['https://hook.example.com/', 'fd00::1', false],
  ['http://localhost:8080/', '127.0.0.1', false],
  ['http://127.0.0.1:8080/', '127.0.0.1', true],
  ['http://[fd00::1]/', 'fd00::1', true],
])('the log of a delivery to %s at %s shows the address: %p', (url, address, isShown) => {
  const made = { at: 1, durationMs: 2, errorClass: 'refused', address };
  expect(shownRecord(made, url)).toEqual(isShown ? made : { at: 1, durationMs: 2, errorClass: 'refused' });
});
