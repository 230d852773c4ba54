// RFC 9112 and 9110: malformed requests, and valid requests that look malformed. Each uses a new connection; valid requests ask to close it.
import type { RawAnswer } from './raw-connection.ts';

/** A status and an error code; a status alone for an answer without an error; or 'closed' for a connection without an answer. */
export type Expected = readonly [status: number, code: string] | readonly [status: number] | 'closed';

export interface HostileRequest {
  readonly name: string;
  readonly bytes: string;
  /** Any of these results is right, because RFC 9112 leaves a choice. */
  readonly expected: readonly Expected[];
  readonly also?: (answer: RawAnswer) => boolean;
}

const PATH = '/v4/demo/streams/value';
const BODY = '{"value":1}';
const REFUSED: readonly Expected[] = [[400, 'invalid_request']];
const REFUSED_OR_CLOSED: readonly Expected[] = [[400, 'invalid_request'], 'closed'];
const TAKEN: readonly Expected[] = [[200]];

export interface Pieces {
  readonly line?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly end?: string;
}

/** Returns a good call in which the given pieces are replaced. */
function callOf(token: string, { line, headers, body = BODY, end = '\r\n' }: Pieces = {}): string {
  const length = headers?.some((header) => /^(content-length|transfer-encoding)\s*:/i.test(header)) ?? false;
  return [
    line ?? `POST ${PATH} HTTP/1.1`,
    'Host: gateway',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Connection: close',
    ...(length ? [] : [`Content-Length: ${body.length}`]),
    ...(headers ?? []),
    end === '\r\n' ? `\r\n${body}` : `${end}${body}`,
  ].join(end);
}

export function hostileRequests(token: string): HostileRequest[] {
  const call = (pieces: Pieces): string => callOf(token, pieces);
  const chunked = (body: string, ...headers: string[]): string =>
    call({ headers: ['Transfer-Encoding: chunked', ...headers], body });
  const row = (name: string, bytes: string, expected = REFUSED, also?: HostileRequest['also']): HostileRequest => ({
    name,
    bytes,
    expected,
    ...(also && { also }),
  });
  const smuggled = `GET /v4/demo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  return [
    row('a good call', call({}), TAKEN),
    row('a good call in chunks', chunked('4\r\n{"va\r\n7\r\nlue":1}\r\n0\r\n\r\n'), TAKEN),
    row('chunks with an extension', chunked('b;x=y\r\n{"value":1}\r\n0\r\n\r\n'), TAKEN),
    row('chunks with a trailer', chunked('b\r\n{"value":1}\r\n0\r\nX: y\r\n\r\n'), TAKEN),
    row('empty lines before the request', `\r\n\r\n${call({})}`, TAKEN),

    // If two parsers disagree where a request ends, one request can be smuggled into another.
    row(
      'a length and chunks',
      call({ headers: ['Content-Length: 4', 'Transfer-Encoding: chunked'], body: `0\r\n\r\n${smuggled}` }),
    ),
    row(
      'chunks and a length',
      call({ headers: ['Transfer-Encoding: chunked', 'Content-Length: 4'], body: `0\r\n\r\n${smuggled}` }),
    ),
    row('two lengths', call({ headers: ['Content-Length: 11', 'Content-Length: 5'] })),
    row('the same length twice', call({ headers: ['Content-Length: 11', 'Content-Length: 11'] })),
    row('two lengths in one', call({ headers: ['Content-Length: 11, 11'] })),
    ...['+11', '-1', '0x0b', '11 ', '1 1', '', '11\u00a0', 'eleven', '1e1', '99999999999999999999'].map((length) =>
      row(
        `the length ${JSON.stringify(length)}`,
        call({ headers: [`Content-Length: ${length}`] }),
        length === '11 ' ? TAKEN : REFUSED,
      ),
    ),
    row('a space before the colon of a length', call({ headers: ['Content-Length : 11'] })),
    row(
      'a tab before the colon of a coding',
      chunked('0\r\n\r\n').replace('Transfer-Encoding:', 'Transfer-Encoding\t:'),
    ),
    row('a fold in a length', call({ headers: ['Content-Length:\r\n 11'] })),
    ...[
      'gzip, chunked',
      'chunked, gzip',
      'gzip',
      'identity',
      'xchunked',
      'chunked, chunked',
      '"chunked"',
      'chunked;q=1',
      '\u000bchunked',
      'chunke',
    ].map((coding) =>
      row(
        `the transfer coding ${JSON.stringify(coding)}`,
        call({ headers: [`Transfer-Encoding: ${coding}`], body: '0\r\n\r\n' }),
      ),
    ),
    row('two transfer codings', chunked('0\r\n\r\n', 'Transfer-Encoding: identity')),
    row('chunks in HTTP/1.0', chunked('0\r\n\r\n').replace('HTTP/1.1', 'HTTP/1.0')),
    ...['g', '-1', '0x1', '+1', ' 1', '', '1 ', 'fffffffffffffffff', '1;\n'].map((size) =>
      row(`a chunk of the size ${JSON.stringify(size)}`, chunked(`${size}\r\n{\r\n0\r\n\r\n`)),
    ),
    row('a chunk longer than its size', chunked('1\r\n{}\r\n0\r\n\r\n')),
    row('a chunk ended by a bare LF', chunked('2\r\n{}\n0\r\n\r\n')),
    row('an endless extension of a chunk', chunked(`2;${'x'.repeat(100_000)}`)),
    row('endless trailers', chunked(`2\r\n{}\r\n0\r\n${'x: y\r\n'.repeat(50_000)}`)),

    // Line ends and headers.
    row('bare LFs', call({ end: '\n' })),
    row('bare CRs', call({ end: '\r' }), REFUSED_OR_CLOSED),
    row('a bare LF between headers', call({ headers: ['X: y\nZ: w'] })),
    row('a bare CR in a header', call({ headers: ['X: y\rZ: w'] })),
    row('a NUL in a header', call({ headers: ['X: y\0z'] })),
    row('a folded header', call({ headers: ['X: y\r\n z'] })),
    row('a header without a name', call({ headers: [': y'] })),
    row('a header without a colon', call({ headers: ['hello'] })),
    row('a space within a name', call({ headers: ['X Y: z'] })),
    row('a space before the first header', call({}).replace('Host:', ' Host:')),
    row('a name that is not ASCII', call({ headers: ['X\u00e9: y'] })),
    row('a huge header', call({ headers: [`X: ${'x'.repeat(100_000)}`] }), REFUSED_OR_CLOSED),
    row(
      'a flood of headers',
      call({ headers: Array.from({ length: 20_000 }, (_, n) => `X-${n}: y`) }),
      REFUSED_OR_CLOSED,
    ),
    row(
      'a flood of headers with the same name',
      call({ headers: Array.from({ length: 20_000 }, () => 'a:') }),
      REFUSED_OR_CLOSED,
    ),
    row('`__proto__` as a header', call({ headers: ['__proto__: x', 'constructor: y', 'toString: z'] }), TAKEN),

    // The request line.
    ...['HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/3', 'HTTP/1', 'HTTP/11.1', 'http/1.1', 'HTTQ/1.1', 'HTTP/1.1 x'].map(
      (version) => row(`the version ${version}`, call({ line: `POST ${PATH} ${version}` })),
    ),
    row('no version', call({ line: `POST ${PATH}` })),
    row('the beginning of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    row('the beginning of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
    row('another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'),
    row('zeros', '\0'.repeat(1000)),
    row('a lower-case method', call({ line: `post ${PATH} HTTP/1.1` })),
    row('an unknown method', call({ line: `FLY ${PATH} HTTP/1.1` })),
    // RFC 9112 §3: a server may split the words of the request line at any whitespace.
    row('two spaces', call({ line: `POST  ${PATH} HTTP/1.1` }), [...REFUSED, ...TAKEN]),
    row('a tab for a space', call({ line: `POST\t${PATH} HTTP/1.1` })),
    row('a space in the path', call({ line: 'POST /v4/demo/streams/va lue HTTP/1.1' })),

    // The target.
    row('a whole URL', call({ line: `POST http://gateway${PATH} HTTP/1.1` }), TAKEN),
    row('a whole URL of another host', call({ line: `POST https://other:99${PATH}?async=false HTTP/1.1` }), TAKEN),
    row('a URL of another scheme', call({ line: `POST ftp://gateway${PATH} HTTP/1.1` })),
    row('a URL without a path', call({ line: 'POST http://gateway HTTP/1.1' }), [[404, 'not_found']]),
    row('a path without a leading slash', call({ line: 'POST v4/demo/streams/value HTTP/1.1' })),
    row('two slashes', call({ line: `POST /${PATH} HTTP/1.1` }), [[404, 'not_found']]),
    row('dots', call({ line: 'POST /v4/demo/../demo/streams/value HTTP/1.1' }), [[404, 'not_found']]),
    row('escaped dots', call({ line: 'POST /v4/demo/%2e%2e/value HTTP/1.1' }), [[404, 'not_found']]),
    row('an escaped slash', call({ line: 'POST /v4/demo/streams%2Fvalue/x HTTP/1.1' }), [[404, 'not_found']]),
    row('a backslash', call({ line: 'POST /v4\\demo\\streams\\value HTTP/1.1' }), [[404, 'not_found']]),
    row('an escaped NUL', call({ line: 'POST /v4/demo/streams/value%00 HTTP/1.1' }), [[404, 'not_found']]),
    row('a NUL', call({ line: 'POST /v4/demo/streams/value\0 HTTP/1.1' })),
    row('bytes that are not ASCII', call({ line: 'POST /v4/demo/streams/v\u00e4lue HTTP/1.1' }), [
      ...REFUSED,
      [404, 'not_found'],
    ]),
    row('half an escape', call({ line: `POST ${PATH}%4 HTTP/1.1` })),
    row('an escape that is not UTF-8', call({ line: `POST ${PATH}%ff HTTP/1.1` })),
    row('a fragment', call({ line: `POST ${PATH}#x HTTP/1.1` }), [...REFUSED, [404, 'not_found'], [200]]),
    row('a huge path', call({ line: `POST /${'x'.repeat(10_000)} HTTP/1.1` }), [[404, 'not_found']]),
    row('an even larger path', call({ line: `POST /${'x'.repeat(100_000)} HTTP/1.1` }), REFUSED_OR_CLOSED),
    row('a huge query', call({ line: `POST ${PATH}?${'x=y&'.repeat(2000)} HTTP/1.1` }), TAKEN),
    row('no host', call({}).replace('Host: gateway\r\n', '')),
    row('two hosts', call({ headers: ['Host: other'] })),

    // Methods that calls do not accept.
    row(
      'CONNECT',
      'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n\r\n',
      [[405, 'method_not_allowed']],
      ({ headers }) => 'allow' in headers,
    ),
    row(
      'TRACE, which must not echo',
      call({ line: `TRACE ${PATH} HTTP/1.1` }),
      [[405, 'method_not_allowed']],
      ({ body }) => !body.includes(token),
    ),
    ...['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'PURGE'].map((method) =>
      row(
        method,
        call({ line: `${method} ${PATH} HTTP/1.1` }),
        [[405, 'method_not_allowed']],
        ({ headers }) => headers.allow === 'POST',
      ),
    ),
    row('OPTIONS *', call({ line: 'OPTIONS * HTTP/1.1' }), [[404, 'not_found']]),

    // Upgrades.
    row(
      'a websocket',
      `GET ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      [[501, 'not_implemented']],
    ),
    row(
      'an upgrade to HTTP/2',
      call({ headers: ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'] }),
      TAKEN,
    ),

    // Expectations.
    row('an expectation that no server can meet', call({ headers: ['Expect: 200-ok'] }), [[417, 'invalid_request']]),
    row('two expectations, one of which can be met', call({ headers: ['Expect: 100-continue, 200-ok'] }), [
      [417, 'invalid_request'],
    ]),
    row(
      'an expectation in HTTP/1.0',
      call({ headers: ['Expect: 100-continue'] }).replace('HTTP/1.1', 'HTTP/1.0'),
      TAKEN,
    ),
  ];
}
