// RFC 9112 and Contract 1 to 3: slow, silent, half-closed, pipelining and very many callers. A well-behaved caller is served meanwhile.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { fileSays, until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { codeOf, RawConnection } from './raw-connection.ts';

const MAX_BODY_BYTES = 100_000;
let stack: TestStack;
let caller: Caller;
let bearer: string;
beforeAll(async () => {
  stack = await startTestStack({
    env: {
      WORKER_APPS: 'demo/streams',
      MAX_BODY_BYTES: String(MAX_BODY_BYTES),
      BODIES_IN_FLIGHT_BYTES: String(4 * MAX_BODY_BYTES),
    },
  });
  caller = new Caller(stack.port, stack.jwtSecret);
  bearer = `Authorization: Bearer ${signToken(stack.jwtSecret, { project: 'demo', ttlS: 3600 })}`;
  await caller.ready('streams');
});
afterAll(() => stack.stop());

const connect = (options?: { bodiless: boolean }): Promise<RawConnection> => RawConnection.open(stack.port, options);
let marks = 0;
const mark = (): string => {
  marks += 1;
  return join(stack.marksDir, String(marks));
};

/** Returns a call of `streams/<fn>`; `more` are header lines. */
function call(fn: string, params: object, more: readonly string[] = [], version = '1.1'): string {
  const body = JSON.stringify(params);
  const head = [`POST /v4/demo/streams/${fn} HTTP/${version}`, 'Host: x', bearer, 'Content-Type: application/json'];
  return [...head, `Content-Length: ${body.length}`, ...more, '', body].join('\r\n');
}
const STREAM = 'Accept: text/event-stream';
const get = (path: string, method = 'GET'): string => `${method} ${path} HTTP/1.1\r\nHost: x\r\n${bearer}\r\n\r\n`;

/** Checks that a good caller is served. */
async function othersAreServed(): Promise<void> {
  expect((await caller.call('streams/value', { value: 1 })).status).toBe(200);
}

/** Waits until the gateway has closed the connection. Returns the status and the code of the last answer. */
async function lastWord(connection: RawConnection): Promise<string> {
  const answer = (await connection.closed()).at(-1);
  return answer === undefined ? 'closed' : `${answer.status} ${codeOf(answer)}`;
}

describe('pipelining', () => {
  test('answers, streams included, come in the order of the requests, whichever is ready first', async () => {
    const [gate, started] = [mark(), mark()];
    const connection = await connect();
    connection.send(
      call('waits', { gate, started }) +
        get('/healthz') +
        call('items', { items: ['a', 'b'] }, [STREAM]) +
        call('value', { value: 7 }) +
        get('/v4/demo/nothing/here/at/all') +
        get('/healthz', 'HEAD').replace('HTTP/1.1\r\n', 'HTTP/1.1\r\nConnection: close\r\n'),
    );
    await fileSays(started);
    expect(connection.text).toBe('');
    await writeFile(gate, '');
    await connection.end();
    const last = connection.text.lastIndexOf('HTTP/1.1 200');
    const answers = connection.answersBefore(last);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 404]);
    expect(answers[0]?.body).toContain('"waited"');
    expect(answers[1]?.body).toContain('alive');
    expect(answers[2]?.body).toBe('data: a\n\ndata: b\n\n');
    expect(answers[3]?.body).toContain('"result":7');
    // An answer to HEAD has no body.
    expect(connection.text.slice(last)).toMatch(/\r\n\r\n$/);
  });

  test('a request sent byte by byte is one request, and two requests in one write are two', async () => {
    const connection = await connect();
    for (const byte of call('value', { value: 1 })) {
      connection.socket.setNoDelay(true);
      connection.send(byte);
    }
    const [first] = await connection.final();
    // Longer than the 60 s for which load balancers keep idle connections, so that the load balancer closes first.
    expect([first?.status, first?.headers['keep-alive']]).toEqual([200, 'timeout=75']);
    connection.send(call('value', { value: 2 }) + call('value', { value: 3 }));
    expect((await connection.final(3)).map(({ body }) => body)).toEqual([
      expect.stringContaining('"result":1'),
      expect.stringContaining('"result":2'),
      expect.stringContaining('"result":3'),
    ]);
    connection.leave();
  });

  test('after a failed call the next request uses the connection; a call with an unread body closes the connection', async () => {
    const connection = await connect();
    connection.send(
      call('value', {}) + call('value', { value: 1 }) + call('nothing', {}) + call('value', { value: 2 }),
    );
    expect((await connection.closed()).map(({ status }) => status)).toEqual([422, 200, 404]);
  });

  test('a request pipelined after a stream does not run if the caller disconnects from the stream', async () => {
    const [tidied, started] = [mark(), mark()];
    const connection = await connect();
    connection.send(call('tidy', { mark: tidied }, [STREAM]) + call('waits', { gate: mark(), started }));
    await connection.until(({ text }) => text.includes('data: begun'));
    connection.leave();
    await fileSays(tidied);
  });
});

describe('HTTP/1.0', () => {
  test('an answer has no chunks and ends when the connection closes', async () => {
    const connection = await connect();
    const [answer] = await connection.send(call('items', { items: ['a', 'b'] }, [STREAM], '1.0')).closed();
    expect(answer).toMatchObject({ status: 200, body: 'data: a\n\ndata: b\n\n' });
    expect(answer?.headers).not.toHaveProperty('transfer-encoding');
    expect(answer?.headers.connection).toBe('close');
  });

  test('a request needs no host, and keeps its connection if it asks for keep-alive', async () => {
    const connection = await connect();
    const polite = call('value', { value: 1 }, ['Connection: keep-alive'], '1.0').replace('Host: x\r\n', '');
    const [answer] = await connection.send(polite).final();
    expect(answer?.headers.connection).toBe('keep-alive');
    await connection.send(call('value', { value: 1 }, [], '1.0')).closed();
    expect(connection.answers.map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe('HEAD', () => {
  test.each(['/healthz', '/readyz', '/v4/demo', '/v4/nobody'])(
    '%s returns the headers of GET and no body',
    async (path) => {
      const [getting, heading] = [await connect(), await connect({ bodiless: true })];
      const [whole] = await getting.send(get(path)).final();
      const [head] = await heading.send(get(path, 'HEAD')).final();
      expect(head?.status).toBe(whole?.status);
      for (const name of ['content-length', 'content-type', 'server']) {
        expect(head?.headers[name]).toBe(whole?.headers[name]);
      }
      for (const connection of [getting, heading]) connection.leave();
      expect(heading.text).toMatch(/\r\n\r\n$/);
    },
  );
});

describe('a caller that half-closes its connection', () => {
  test('after the request receives its answer, and the gateway then closes the connection', async () => {
    const [gate, started] = [mark(), mark()];
    const connection = await connect();
    connection.send(call('waits', { gate, started })).halfClose();
    await fileSays(started);
    // The gateway has probed the caller more than once (interim answers with status 100).
    await connection.until(({ answers }) => answers.filter(({ status }) => status === 100).length > 1);
    await writeFile(gate, '');
    const answers = (await connection.closed()).filter(({ status }) => status >= 200);
    expect(answers).toEqual([expect.objectContaining({ status: 200, body: expect.stringContaining('"waited"') })]);
    expect(answers[0]?.headers.connection).toBe('close');
  });

  test('after the request receives its whole stream', async () => {
    const reading = await connect();
    reading.send(call('sleeping', { n: 3, seconds: 0.4 }, [STREAM])).halfClose();
    const answers = (await reading.closed()).filter(({ status }) => status >= 200);
    expect(answers[0]?.body.replaceAll(': keep-alive\n\n', '')).toBe('data: 0\n\ndata: 1\n\ndata: 2\n\n');
  });

  test.each(['1.1', '1.0'])('and then disconnects, in HTTP/%s, cancels its run', async (version) => {
    const [tidied, started] = [mark(), mark()];
    const streaming = await connect();
    streaming.send(call('tidy', { mark: tidied }, [STREAM], version));
    await streaming.until(({ text }) => text.includes('begun'));
    const waiting = await connect();
    waiting.send(call('waits', { gate: mark(), started }, [], version));
    const run = await fileSays(started);
    for (const connection of [streaming, waiting]) {
      connection.halfClose();
      // The connection closes in the ordinary way, as it does when the caller's process is killed.
      connection.leave();
    }
    await fileSays(tidied);
    expect((await caller.ended(run)).status).toBe('cancelled');
  });

  test('in the middle of its body is disconnected', async () => {
    const connection = await connect();
    connection.send(call('value', { value: 1 }).slice(0, -2)).halfClose();
    expect(await lastWord(connection)).toMatch(/^(closed|400 invalid_request)$/);
    await othersAreServed();
  });
});

describe('bodies', () => {
  const announced = (bytes: number): string =>
    call('value', {}).replace('Content-Length: 2\r\n\r\n{}', `Content-Length: ${bytes}\r\n\r\n`);

  test('the bytes of all bodies together are limited; a body over the limit is rejected, and small bodies are still accepted', async () => {
    const most = ' '.repeat(MAX_BODY_BYTES - 1);
    const connections = await Promise.all(Array.from({ length: 6 }, () => connect()));
    const refused = connections.map((connection) =>
      connection
        .send(announced(MAX_BODY_BYTES) + most)
        .final()
        .then(([answer]) => answer),
    );
    const first = await Promise.race(refused);
    expect(first && codeOf(first)).toBe('overloaded');
    expect(first?.headers['retry-after']).toBe('1');
    await othersAreServed();
    // The gateway reads the accepted bodies to their end.
    const open = connections.filter(({ answers }) => answers.length === 0);
    expect(open.length).toBeGreaterThan(0);
    for (const connection of open) connection.send('}');
    for (const connection of open) expect((await connection.final())[0]?.status).toBe(400);
    for (const connection of connections) connection.leave();
    await othersAreServed();
  });

  test('a body in chunks of one byte is read, and is limited in size', async () => {
    const pieces = (text: string): string => [...text].map((byte) => `1\r\n${byte}\r\n`).join('');
    const chunked = call('value', {}).replace('Content-Length: 2\r\n\r\n{}', 'Transfer-Encoding: chunked\r\n\r\n');
    const connection = await connect();
    connection.send(`${chunked}${pieces(`{"value":"${'x'.repeat(20_000)}"}`)}0\r\n\r\n`);
    expect((await connection.final())[0]?.status).toBe(200);
    connection.send(chunked + pieces(' '.repeat(MAX_BODY_BYTES + 1)));
    const [, answer] = await connection.final(2);
    expect(answer && codeOf(answer)).toBe('payload_too_large');
    connection.leave();
  });

  test('a body whose Content-Length is too large is rejected before it is sent', async () => {
    const connection = await connect();
    const [answer] = await connection.send(announced(MAX_BODY_BYTES + 1)).final();
    expect(answer && codeOf(answer)).toBe('payload_too_large');
    connection.leave();
  });

  test('bytes after the announced length are read as the next request and rejected', async () => {
    const connection = await connect();
    connection.send(`${call('value', { value: 1 })}{"value":2}`);
    expect(await lastWord(connection)).toMatch(/^(closed|200 undefined|400 invalid_request)$/);
    await othersAreServed();
  });
});

test('callers are served while thousands of idle connections are open', async () => {
  const idle = fork(join(import.meta.dirname, 'idle-callers.mjs'), [String(stack.port)]);
  try {
    const [opened] = (await once(idle, 'message')) as [number];
    // The number depends on the process's limit of open files; idle-callers.mjs opens at most 10,000.
    expect(opened).toBeGreaterThan(900);
    for (let n = 0; n < 20; n += 1) await othersAreServed();
    const { events } = await caller.stream('streams/items', { items: ['a'] });
    expect(await events.next()).toBe('data: a');
  } finally {
    idle.kill('SIGKILL');
    await once(idle, 'exit');
  }
  await until(async () => (await caller.call('streams/value', { value: 1 })).status === 200);
});
