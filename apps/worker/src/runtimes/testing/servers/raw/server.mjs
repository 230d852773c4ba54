// A web server with every kind of misbehaviour. Each path answers with its bytes over a bare socket.
import { createServer } from 'node:net';

const head = (type, ...more) =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${more.map((line) => `${line}\r\n`).join('')}\r\n`;
const chunk = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const SSE = head('text/event-stream', 'transfer-encoding: chunked');
const whole = (text) => head('text/plain', `content-length: ${text.length}`) + text;

/** The behaviour of each path on its connection. */
const ways = {
  fine: (socket) => socket.write(whole('fine')),
  'closes-at-once': (socket) => socket.end(),
  'resets-at-once': (socket) => socket.resetAndDestroy(),
  'closes-mid-head': (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-ty'),
  'resets-mid-head': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-ty', () => socket.resetAndDestroy()),
  'closes-mid-body': (socket) => socket.end(`${head('text/plain', 'content-length: 10')}half`),
  'resets-mid-body': (socket) =>
    socket.write(`${head('application/json', 'content-length: 10')}half`, () =>
      setTimeout(() => socket.resetAndDestroy(), 50),
    ),
  'closes-mid-chunk': (socket) => socket.end(`${SSE}${chunk('data: one\n\n')}10\r\ndata: t`),
  'closes-between-chunks': (socket) => socket.end(SSE + chunk('data: one\n\n')),
  'resets-mid-stream': (socket) =>
    socket.write(SSE + chunk('data: one\n\n'), () => setTimeout(() => socket.resetAndDestroy(), 50)),
  'ends-mid-event': (socket) => socket.end(`${SSE}${chunk('data: one\n\ndata: two\n')}0\r\n\r\n`),
  'ends-mid-event-without-framing': (socket) =>
    socket.end(`${head('text/event-stream', 'connection: close')}data: one\n\ndata: t`),
  'ends-without-framing': (socket) => socket.end(`${head('text/event-stream', 'connection: close')}data: one\n\n`),
  'length-too-long': (socket) => socket.end(`${head('text/plain', 'content-length: 100')}short`),
  'length-too-short': (socket) => socket.write(`${head('text/plain', 'content-length: 4')}more than four`),
  'length-too-short-and-closes': (socket) =>
    socket.end(`${head('text/plain', 'content-length: 4', 'connection: close')}more than four`),
  'two-lengths': (socket) => socket.end(`${head('text/plain', 'content-length: 4', 'content-length: 5')}four`),
  'length-that-is-none': (socket) => socket.end(`${head('text/plain', 'content-length: four')}four`),
  'chunk-size-that-is-none': (socket) => socket.end(`${SSE}zz\r\ndata\r\n`),
  // Leaves bytes of the body unread, so that the system resets the connection after the answer.
  'refuses-a-body': (socket) =>
    socket.pause().write(whole('no').replace('200 OK', '413 Content Too Large'), () => socket.destroy()),
  'never-answers': () => {},
  'never-ends-its-head': (socket) => socket.write('HTTP/1.1 200 OK\r\nx-slow: '),
  'never-ends-its-body': (socket) => socket.write(`${head('text/plain', 'content-length: 10')}half`),
  'endless-head': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    const more = () => {
      while (!socket.destroyed && socket.write(`x-more: ${'x'.repeat(1000)}\r\n`));
    };
    socket.on('drain', more);
    more();
  },
  'large-head': (socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nx-large: ${'x'.repeat(40_000)}\r\ncontent-length: 0\r\n\r\n`),
  'endless-body': (socket) => {
    socket.write(head('application/octet-stream', 'transfer-encoding: chunked'));
    const more = () => {
      while (!socket.destroyed && socket.write(chunk('x'.repeat(10_000))));
    };
    socket.on('drain', more);
    more();
  },
  'large-length': (socket) => socket.write(head('application/octet-stream', 'content-length: 99999999999')),
  'endless-line': (socket) => {
    socket.write(head('application/x-ndjson', 'transfer-encoding: chunked'));
    const more = () => {
      while (!socket.destroyed && socket.write(chunk('x'.repeat(10_000))));
    };
    socket.on('drain', more);
    more();
  },
  'continues-first': (socket) =>
    socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${whole('at last')}`),
  'only-continues': (socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'),
  'switches-protocols': (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: chat\r\nconnection: upgrade\r\n\r\n'),
  garbage: (socket) => socket.end('\x00\x01\x02 this is no HTTP\r\n\r\n'),
  'status-that-is-none': (socket) => socket.end('HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n'),
  'header-that-is-none': (socket) => socket.end('HTTP/1.1 200 OK\r\nx-bad: a\x00b\r\ncontent-length: 0\r\n\r\n'),
  'old-protocol': (socket) => socket.end('HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{"old": 1}'),
  'no-content': (socket) => socket.write('HTTP/1.1 204 No Content\r\nx-own: yes\r\n\r\n'),
  'not-modified': (socket) => socket.write('HTTP/1.1 304 Not Modified\r\netag: "a"\r\ncontent-length: 7\r\n\r\n'),
  compressed: (socket) =>
    socket.write(
      `${head('text/event-stream', 'content-encoding: gzip', 'content-length: 4')}\x1f\x8b\x08\x00`,
      'latin1',
    ),
  'sheds-headers': (socket) =>
    socket.write(
      `HTTP/1.1 200 OK\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-Request-Id: theirs\r\nX-Kept: a\r\nx-kept: b\r\ncontent-length: 0\r\n\r\n`,
    ),
  'odd-line-ends': (socket) =>
    socket.end(`${SSE}${chunk('\uFEFFdata: cr\r\rdata: cr')}${chunk('lf\r')}${chunk('\n\r\ndata:lf\n\n')}0\r\n\r\n`),
  'cut-characters': (socket) => {
    const text = Buffer.from('aü\u{1F600}b');
    socket.write(head('text/plain', 'transfer-encoding: chunked'));
    let at = 0;
    const next = () => {
      if (at === text.length) return socket.write('0\r\n\r\n');
      socket.write(Buffer.concat([Buffer.from('1\r\n'), text.subarray(at, ++at), Buffer.from('\r\n')]));
      setTimeout(next, 5);
    };
    next();
  },
  'latin-text': (socket) =>
    socket.end(
      Buffer.from(
        `${head('text/plain; charset=iso-8859-1', 'transfer-encoding: chunked')}1\r\n\xe9\r\n0\r\n\r\n`,
        'latin1',
      ),
    ),
  'looks-ready-made': (socket) => socket.end(`${SSE}${chunk('data: data: x\ndata: \ndata: \n\n')}0\r\n\r\n`),
};

const server = createServer((socket) => {
  socket.on('error', () => {});
  let heard = '';
  let answered = 0;
  socket.on('data', (data) => {
    heard += data.toString('latin1');
    if (!heard.includes('\r\n\r\n')) return;
    const path = /^\S+ \/(\S*)/.exec(heard)?.[1] ?? '';
    heard = '';
    // Like a server that closes a kept connection while the next request is on its way.
    if (path === 'one-each' && answered++ > 0) socket.end();
    else (ways[path] ?? ways.fine)(socket);
  });
});
server.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
