// RFC 9112 and contract 1 to 3: callers that are slow, silent, many, half gone, or say more than one thing at a time; and one that notices nothing of it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { fileSays, until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { signToken } from '../stack/tokens.ts';
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

/** A call of `streams/<fn>`; `more` are header lines. */
function call(fn: string, params: object, more: readonly string[] = [], version = '1.1'): string {
  const body = JSON.stringify(params);
  const head = [`POST /v4/demo/streams/${fn} HTTP/${version}`, 'Host: x', bearer, 'Content-Type: application/json'];
  return [...head, `Content-Length: ${body.length}`, ...more, '', body].join('\r\n');
}
const STREAM = 'Accept: text/event-stream';
const get = (path: string, method = 'GET'): string => `${method} ${path} HTTP/1.1\r\nHost: x\r\n${bearer}\r\n\r\n`;

/** That a good caller is served. */
async function othersAreServed(): Promise<void> {
  expect((await caller.call('streams/value', { value: 1 })).status).toBe(200);
}

/** What was said last on a connection that the gateway has closed. */
async function lastWord(connection: RawConnection): Promise<string> {
  const answer = (await connection.closed()).at(-1);
  return answer === undefined ? 'closed' : `${answer.status} ${codeOf(answer)}`;
}

describe('pipelining', () => {
  test('answers come in the order of the requests, whichever is ready first, streams among them', async () => {
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
    // To HEAD, nothing follows the head.
    expect(connection.text.slice(last)).toMatch(/\r\n\r\n$/);
  });

  test('a request that is cut to pieces is one, and two in one piece are two', async () => {
    const connection = await connect();
    for (const byte of call('value', { value: 1 })) {
      connection.socket.setNoDelay(true);
      connection.send(byte);
    }
    const [first] = await connection.final();
    // Longer than balancers keep theirs (60 s): they close first.
    expect([first?.status, first?.headers['keep-alive']]).toEqual([200, 'timeout=75']);
    connection.send(call('value', { value: 2 }) + call('value', { value: 3 }));
    expect((await connection.final(3)).map(({ body }) => body)).toEqual([
      expect.stringContaining('"result":1'),
      expect.stringContaining('"result":2'),
      expect.stringContaining('"result":3'),
    ]);
    connection.leave();
  });

  test('a call that failed leaves the connection to the next one; one whose body was not read closes it', async () => {
    const connection = await connect();
    connection.send(
      call('value', {}) + call('value', { value: 1 }) + call('nothing', {}) + call('value', { value: 2 }),
    );
    expect((await connection.closed()).map(({ status }) => status)).toEqual([422, 200, 404]);
  });

  test('what follows a stream that its caller has left does not run', async () => {
    const [tidied, started] = [mark(), mark()];
    const connection = await connect();
    connection.send(call('tidy', { mark: tidied }, [STREAM]) + call('waits', { gate: mark(), started }));
    await connection.until(({ text }) => text.includes('data: begun'));
    connection.leave();
    await fileSays(tidied);
  });
});

describe('HTTP/1.0', () => {
  test('has no chunks: the end of the connection is the end of the answer', async () => {
    const connection = await connect();
    const [answer] = await connection.send(call('items', { items: ['a', 'b'] }, [STREAM], '1.0')).closed();
    expect(answer).toMatchObject({ status: 200, body: 'data: a\n\ndata: b\n\n' });
    expect(answer?.headers).not.toHaveProperty('transfer-encoding');
    expect(answer?.headers.connection).toBe('close');
  });

  test('needs no host, and keeps its connection where it asks for that', async () => {
    const connection = await connect();
    const polite = call('value', { value: 1 }, ['Connection: keep-alive'], '1.0').replace('Host: x\r\n', '');
    const [answer] = await connection.send(polite).final();
    expect(answer?.headers.connection).toBe('keep-alive');
    await connection.send(call('value', { value: 1 }, [], '1.0')).closed();
    expect(connection.answers.map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe('HEAD', () => {
  test.each(['/healthz', '/readyz', '/v4/demo', '/v4/nobody'])('%s has the head of GET, and no body', async (path) => {
    const [getting, heading] = [await connect(), await connect({ bodiless: true })];
    const [whole] = await getting.send(get(path)).final();
    const [head] = await heading.send(get(path, 'HEAD')).final();
    expect(head?.status).toBe(whole?.status);
    for (const name of ['content-length', 'content-type', 'server']) {
      expect(head?.headers[name]).toBe(whole?.headers[name]);
    }
    for (const connection of [getting, heading]) connection.leave();
    expect(heading.text).toMatch(/\r\n\r\n$/);
  });
});

describe('a caller that closes its side after the request', () => {
  test('has its answer, and the connection ends with it', async () => {
    const [gate, started] = [mark(), mark()];
    const connection = await connect();
    connection.send(call('waits', { gate, started })).halfClose();
    await fileSays(started);
    // More than once it was looked whether it is there.
    await connection.until(({ answers }) => answers.filter(({ status }) => status === 100).length > 1);
    await writeFile(gate, '');
    const answers = (await connection.closed()).filter(({ status }) => status >= 200);
    expect(answers).toEqual([expect.objectContaining({ status: 200, body: expect.stringContaining('"waited"') })]);
    expect(answers[0]?.headers.connection).toBe('close');
  });

  test('has its stream to the end', async () => {
    const reading = await connect();
    reading.send(call('sleeping', { n: 3, seconds: 0.4 }, [STREAM])).halfClose();
    const answers = (await reading.closed()).filter(({ status }) => status >= 200);
    expect(answers[0]?.body.replaceAll(': keep-alive\n\n', '')).toBe('data: 0\n\ndata: 1\n\ndata: 2\n\n');
  });

  test.each(['1.1', '1.0'])('and leaves then, in HTTP/%s, cancels its run', async (version) => {
    const [tidied, started] = [mark(), mark()];
    const streaming = await connect();
    streaming.send(call('tidy', { mark: tidied }, [STREAM], version));
    await streaming.until(({ text }) => text.includes('begun'));
    const waiting = await connect();
    waiting.send(call('waits', { gate: mark(), started }, [], version));
    const run = await fileSays(started);
    for (const connection of [streaming, waiting]) {
      connection.halfClose();
      // An ordinary close, as a killed process leaves it.
      connection.leave();
    }
    await fileSays(tidied);
    expect((await caller.ended(run)).status).toBe('cancelled');
  });

  test('in the middle of its body is gone', async () => {
    const connection = await connect();
    connection.send(call('value', { value: 1 }).slice(0, -2)).halfClose();
    expect(await lastWord(connection)).toMatch(/^(closed|400 invalid_request)$/);
    await othersAreServed();
  });
});

describe('bodies', () => {
  const announced = (bytes: number): string =>
    call('value', {}).replace('Content-Length: 2\r\n\r\n{}', `Content-Length: ${bytes}\r\n\r\n`);

  test('all together are bounded over all callers; what is over is refused, and small ones still come in', async () => {
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
    // Those that were not refused are read to their end.
    const open = connections.filter(({ answers }) => answers.length === 0);
    expect(open.length).toBeGreaterThan(0);
    for (const connection of open) connection.send('}');
    for (const connection of open) expect((await connection.final())[0]?.status).toBe(400);
    for (const connection of connections) connection.leave();
    await othersAreServed();
  });

  test('a body in chunks of one byte is read like any other, and bounded like any other', async () => {
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

  test('one that is too long by its own word is refused before it is sent', async () => {
    const connection = await connect();
    const [answer] = await connection.send(announced(MAX_BODY_BYTES + 1)).final();
    expect(answer && codeOf(answer)).toBe('payload_too_large');
    connection.leave();
  });

  test('more than was told is the next request, and no good one', async () => {
    const connection = await connect();
    connection.send(`${call('value', { value: 1 })}{"value":2}`);
    expect(await lastWord(connection)).toMatch(/^(closed|200 undefined|400 invalid_request)$/);
    await othersAreServed();
  });
});

test('with thousands of idle connections others are served', async () => {
  const idle = fork(join(import.meta.dirname, 'idle-callers.mjs'), [String(stack.port)]);
  try {
    const [opened] = (await once(idle, 'message')) as [number];
    // As many as this machine lets a process have, up to ten thousand.
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
