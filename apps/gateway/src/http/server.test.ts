import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type Answer, errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';

const MAX_BODY = 100_000;
const CALL = `/v4/${PROJECT}/chat/run`;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start({
    MAX_BODY_BYTES: String(MAX_BODY),
    BODIES_IN_FLIGHT_BYTES: String(32 * MAX_BODY),
  });
});
afterAll(() => gateway.stop());

/** Returns the bytes that arrive until the connection is closed. */
async function spoken(write: (socket: Socket) => void): Promise<string> {
  const socket = gateway.socket();
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  // A connection that is closed during a write also reports an error.
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  write(socket);
  await closed;
  return text;
}

/** Parses one answer. */
function answerOf(text: string): Answer {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  const [status = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s, 2)));
  return { status: Number(status.split(' ')[1]), headers, text: body };
}

function expectError(answer: Answer, status: number, code: string): void {
  expect(answer.status).toBe(status);
  expect(errorOf(answer)).toEqual({ code, message: expect.any(String), retryable: expect.any(Boolean) });
  expect(answer.headers['x-request-id']).toMatch(UUID_V7);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
}

const withBearer = (bearer: string): Record<string, string> => ({ authorization: `Bearer ${bearer}` });

describe('authorization', () => {
  test.each(['', 'Bearer', 'Bearer ', 'Basic dTpw', 'Bearer a b', 'Bearer abc'])(
    '%j returns 401',
    async (authorization) => {
      const answer = await gateway.call({ headers: { authorization } });
      expectError(answer, 401, 'unauthorized');
      const sent = authorization.startsWith('Bearer ') && authorization !== 'Bearer ';
      expect(answer.headers['www-authenticate']).toBe(sent ? 'Bearer error="invalid_token"' : 'Bearer');
    },
  );

  test('a token of another project or without the scope returns 403', async () => {
    for (const claims of [{ project_id: 'other' }, { project_id: undefined }, { scope: 'runs:read' }]) {
      expectError(await gateway.call({ headers: withBearer(token(claims)) }), 403, 'forbidden');
    }
    const path = `/v4/${PROJECT}/runs/0199aaaa-0000-7000-8000-000000000000`;
    expectError(await gateway.get(path, withBearer(token({ scope: 'call' }))), 403, 'forbidden');
    expectError(await gateway.get(path, withBearer(token({ scope: 'runs:read' }))), 404, 'not_found');
    const apps = `/v4/${PROJECT}`;
    expectError(await gateway.get(apps, withBearer(token({ scope: 'call' }))), 403, 'forbidden');
    expect((await gateway.get(apps, withBearer(token({ scope: 'runs:read' })))).status).toBe(200);
  });

  test('a token for several projects or for all projects is accepted', async () => {
    for (const projects of [['other', PROJECT], '*', ['*']]) {
      const answer = await gateway.get(`/v4/${PROJECT}`, withBearer(token({ project_id: projects })));
      expect(answer.status).toBe(200);
    }
  });

  test('401 and 403 do not wait for the body', async () => {
    for (const bearer of ['abc', token({ project_id: 'other' })]) {
      const text = await spoken((socket) =>
        socket.write(
          `POST ${CALL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bearer}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`,
        ),
      );
      const answer = answerOf(text);
      expectError(answer, bearer === 'abc' ? 401 : 403, bearer === 'abc' ? 'unauthorized' : 'forbidden');
      expect(answer.headers.connection).toBe('close');
    }
  });

  test('a caller that continues to send gets the answer, and its connection is closed', async () => {
    const text = await spoken((socket) => {
      socket.write(`POST ${CALL} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n`);
      const more = (): void => {
        while (socket.writable && socket.write(Buffer.alloc(65_536, 'x')));
      };
      socket.on('drain', more);
      more();
    });
    expectError(answerOf(text), 401, 'unauthorized');
  });

  test('a caller with `Expect: 100-continue` gets 100 only when the gateway needs its body', async () => {
    const head = (bearer: string): string =>
      `POST ${CALL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bearer}\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n`;
    expect(await spoken((socket) => socket.write(head('abc')))).toMatch(/^HTTP\/1\.1 401 /);

    const socket = gateway.socket();
    socket.write(head(token()));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('{}');
    const run = await gateway.worker.next();
    await run.returns('1');
    const [second] = (await once(socket, 'data')) as [Buffer];
    expect(second.toString()).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });
});

describe('the body of a call', () => {
  test.each<[string, Buffer | string]>([
    ['text', 'hello'],
    ['half an object', '{"a":'],
    ['only spaces', '  '],
    ['a list', '[1]'],
    ['null', 'null'],
    ['a string', '"{}"'],
    ['not UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d])],
    ['a byte order mark', '\ufeff{}'],
    ['Python’s NaN', '{"a":NaN}'],
  ])('%s returns 400', async (_, body) => {
    expectError(await gateway.call({ body }), 400, 'invalid_request');
  });

  test('a body over the limit returns 413, with or without `Content-Length`', async () => {
    const body = `{"a":"${'x'.repeat(MAX_BODY)}"}`;
    expectError(await gateway.call({ body }), 413, 'payload_too_large');
    const text = await spoken((socket) => {
      socket.write(
        `POST ${CALL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
      );
      socket.write(`${body.length.toString(16)}\r\n${body}\r\n`);
    });
    expectError(answerOf(text), 413, 'payload_too_large');
  });

  test('a body far over the limit returns 413 to callers that send everything before they read', async () => {
    for (let n = 0; n < 5; n++) {
      expectError(await gateway.call({ body: Buffer.alloc(16 * 1024 * 1024, ' ') }), 413, 'payload_too_large');
    }
  });

  test('too many large bodies at one time return 429, and later calls succeed', async () => {
    const head = `POST ${CALL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\ncontent-type: application/json\r\ncontent-length: ${MAX_BODY}\r\n\r\n`;
    const half = Buffer.alloc(MAX_BODY - 1, ' ');
    const sockets = Array.from({ length: 34 }, () => gateway.socket());
    const [refused] = (await Promise.race(
      sockets.map((socket) => {
        socket.on('error', () => {});
        socket.write(head);
        socket.write(half);
        return once(socket, 'data');
      }),
    )) as [Buffer];
    expectError(answerOf(refused.toString()), 429, 'overloaded');
    for (const socket of sockets) socket.destroy();
    const answer = gateway.call();
    const run = await gateway.worker.next();
    await run.returns('1');
    expect((await answer).status).toBe(200);
  });

  test('another content type returns 415', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', '/', '']) {
      expectError(await gateway.call({ headers: { 'content-type': type } }), 415, 'unsupported_media_type');
    }
  });

  test('a wrong webhook returns 400, and the call does not run', async () => {
    expectError(await gateway.call({ query: '?webhookEndpoint=http://10.0.0.1/' }), 400, 'invalid_request');
    const query = '?webhookEndpoint=https://example.com/';
    const headers = { 'x-webhook-secret': ['a', 'b'] };
    expectError(await gateway.call({ query, headers }), 400, 'invalid_request');
  });
});

describe('a body with malformed chunks returns 400', () => {
  const chunked = (path: string, chunks: string, bearer = token(), method = 'POST'): string =>
    `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bearer}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`;

  test.each([
    ['a malformed size', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['more bytes than the size', '1\r\n{}\r\n0\r\n\r\n'],
    ['an endless extension', `2;${'x'.repeat(100_000)}`],
    ['a second chunk that is malformed', '1\r\n{\r\n}\r\n'],
  ])('%s', async (_, chunks) => {
    const text = await spoken((socket) => socket.write(chunked(CALL, chunks)));
    expectError(answerOf(text), 400, 'invalid_request');
    expect(answerOf(text).headers.connection).toBe('close');
  });

  test('also if the chunk arrives after the head, on every path', async () => {
    const paths: [string, string][] = [
      [CALL, 'POST'],
      [`${CALL}/chat/completions`, 'POST'],
      [`/v4/${PROJECT}/runs/x/cancel`, 'POST'],
      ['/nothing', 'PUT'],
    ];
    for (const [path, method] of paths) {
      const text = await spoken((socket) => {
        socket.write(chunked(path, '1\r\n{\r\n', token(), method));
        setImmediate(() => socket.write('zz\r\n'));
      });
      const answer = answerOf(text);
      expect([400, 404]).toContain(answer.status);
      if (path.startsWith(CALL)) expect(errorOf(answer)).toMatchObject({ code: 'invalid_request' });
    }
  });

  test('the answer to the previous request still arrives', async () => {
    const socket = gateway.socket();
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const closed = once(socket, 'close');
    socket.write(
      `POST ${CALL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token()}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}${chunked(CALL, 'zz\r\n')}`,
    );
    const run = await gateway.worker.next();
    await run.returns('"first"');
    await closed;
    expect(text).toMatch(/^HTTP\/1.1 200 [\s\S]*"first"[\s\S]*HTTP\/1.1 400 /);
  });

  test('no run is created, and no internal error is logged', async () => {
    expect(gateway.lines.filter(({ msg }) => msg === 'internal error')).toEqual([]);
    const calling = gateway.call({ body: '{"text":"next"}' });
    const run = await gateway.worker.next();
    expect(run.params).toBe('{"text":"next"}');
    await run.returns('1');
    await calling;
  });
});

describe('other requests', () => {
  test('another method on a call’s path returns 405 with Allow', async () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY']) {
      const answer = await gateway.request(CALL, { method });
      expectError(answer, 405, 'method_not_allowed');
      expect(answer.headers.allow).toBe('POST');
    }
    const head = await gateway.request(CALL, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 405, text: '' });
  });

  test('another method on a run’s path returns 405 with Allow', async () => {
    const answer = await gateway.request(`/v4/${PROJECT}/runs/x`, { method: 'DELETE' });
    expectError(answer, 405, 'method_not_allowed');
    expect(answer.headers.allow).toContain('GET');
  });

  test('a websocket returns 501', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    for (const path of [CALL, '/', '/v4']) {
      expectError(await gateway.request(path, { method: 'GET', headers }), 501, 'not_implemented');
    }
  });

  test.each([
    '/',
    '/v4',
    '/v4/',
    '/v3/acme/chat/run',
    '/v4/acme/chat',
    '/v4/acme/chat/run/more',
    '/v4//chat/run',
    '/v4/acme/chat/',
  ])('%s returns 404', async (path) => {
    expectError(await gateway.request(path), 404, 'not_found');
  });

  test.each([
    ['a malformed escape', '/v4/acme/chat/%zz', 400, 'invalid_request'],
    ['an endless name', `/v4/acme/chat/${'x'.repeat(2000)}`, 404, 'not_found'],
    ['a slash in a name', '/v4/acme/chat%2Frun/run', 404, 'not_found'],
  ])('%s', async (_, path, status, code) => {
    expectError(await gateway.request(path), status, code);
  });

  test.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['an unknown method', `FLY ${CALL} HTTP/1.1\r\nhost: x\r\n\r\n`],
    ['headers without end', `GET / HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(100_000)}\r\n\r\n`],
    ['no host', `POST ${CALL} HTTP/1.1\r\nconnection: close\r\n\r\n`],
    ['two hosts', `POST ${CALL} HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n`],
    ['two lengths', `POST ${CALL} HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n`],
  ])('%s returns 400', async (_, bytes) => {
    const text = await spoken((socket) => {
      socket.write(bytes);
    });
    expectError(answerOf(text), 400, 'invalid_request');
  });
});

test('a project lists its apps', async () => {
  const answer = await gateway.get(`/v4/${PROJECT}`);
  expect(JSON.parse(answer.text)).toEqual({
    project: PROJECT,
    apps: [
      {
        app: 'chat',
        state: 'ready',
        version: '1',
        functions: [
          {
            name: 'run',
            doc: 'Says it again.',
            parameters: [{ name: 'text', required: true, annotation: 'str' }],
            extra: false,
          },
        ],
      },
    ],
  });
  expectError(await gateway.get('/v4/nobody', withBearer(token({ project_id: '*' }))), 404, 'not_found');
});

test('an unknown run returns 404', async () => {
  for (const id of ['x', '0199aaaa-0000-7000-8000-000000000000', '..%2f..']) {
    expectError(await gateway.get(`/v4/${PROJECT}/runs/${id}`), 404, 'not_found');
  }
});

test('the health pages need no token', async () => {
  for (const path of ['/healthz', '/readyz']) {
    const answer = await gateway.get(path, { authorization: '', connection: 'keep-alive' });
    expect(answer.status).toBe(200);
    expect(answer.headers['x-request-id']).toMatch(UUID_V7);
    expect(answer.headers.connection).toBe('keep-alive');
  }
});
