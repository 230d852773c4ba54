// Contract 1: callers that send a request too slowly. A short request timeout would disturb other tests, so this file has a separate stack.
import { setTimeout as after } from 'node:timers/promises';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { packed } from '../client/deployer.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { codeOf, RawConnection } from './raw-connection.ts';

let stack: TestStack;
let caller: Caller;
let bearer: string;
beforeAll(async () => {
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/streams', REQUEST_TIMEOUT_S: '2' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  bearer = `Authorization: Bearer ${signToken(stack.jwtSecret, { project: 'demo', ttlS: 3600 })}`;
  await caller.ready('streams');
});
afterAll(() => stack.stop());

const connect = (): Promise<RawConnection> => RawConnection.open(stack.port);

/** Returns the head of a call with the given line about its body. */
const head = (length: string): string =>
  ['POST /v4/demo/streams/value HTTP/1.1', 'Host: x', bearer, 'Content-Type: application/json', length, '', ''].join(
    '\r\n',
  );

/** Waits until the gateway has closed the connection. Returns the status and the code of the last answer. */
async function lastWord(connection: RawConnection): Promise<string> {
  const answer = (await connection.closed()).at(-1);
  return answer === undefined ? 'closed' : `${answer.status} ${codeOf(answer)}`;
}

test('a connection without a request is closed without an answer', async () => {
  expect(await (await connect()).closed()).toEqual([]);
});

test('a request that is not complete in time gets a 400 and a closed connection, even if bytes still arrive', async () => {
  const slow: Record<string, string> = {
    'half a first line': 'POST /v4/de',
    'half a head': head('Content-Length: 2').slice(0, 60),
    'half a body': `${head('Content-Length: 100')}{`,
    'half a chunk': `${head('Transfer-Encoding: chunked')}5\r\n{`,
    'chunks without an end': `${head('Transfer-Encoding: chunked')}2\r\n{}\r\n`,
  };
  const dripping: Record<string, string> = {
    'a head, drop by drop': head('Content-Length: 2').slice(0, 40),
    'a body, drop by drop': `${head('Content-Length: 1000')}{`,
  };
  const answerOf = async ([name, bytes]: [string, string]): Promise<[string, string]> => {
    const connection = (await connect()).send(bytes);
    const drip = name in dripping ? setInterval(() => connection.send(' '), 100) : undefined;
    const word = await lastWord(connection);
    clearInterval(drip);
    return [name, word];
  };
  const words = await Promise.all(Object.entries({ ...slow, ...dripping }).map(answerOf));
  for (const [name, word] of words) {
    if (name in slow) expect([name, word]).toEqual([name, '400 invalid_request']);
    else expect(word).toMatch(/^(closed|400 invalid_request)$/);
  }
  expect((await caller.call('streams/value', { value: 1 })).status).toBe(200);
});

test('the timeout for requests does not apply to a slow function', async () => {
  const answer = await caller.call('streams/sleeping', { n: 2, seconds: 1.2 });
  expect(answer.status).toBe(200);
});

test('the upload of a bundle may take longer than the timeout for requests, while bytes arrive', async () => {
  const bundle = await packed({ 'main.py': 'def say():\n    return 1\n' });
  const { bearer: deployer } = new Caller(stack.port, stack.jwtSecret, 'demo', { scope: ['apps:write'] });
  const lines = [`Authorization: ${deployer}`, 'Content-Type: application/gzip', `Content-Length: ${bundle.length}`];
  const connection = await connect();
  connection.send(['POST /v4/demo/apps/slow/versions HTTP/1.1', 'Host: x', ...lines, '', ''].join('\r\n'));
  // Nine seconds: longer than the timeout and Node's own check of requests.
  const piece = Math.ceil(bundle.length / 20);
  for (let at = 0; at < bundle.length; at += piece) {
    connection.send(bundle.subarray(at, at + piece));
    await after(450);
  }
  await connection.until(({ answers }) => answers.length > 0);
  expect(connection.answers[0]?.status).toBe(201);
  connection.leave();
});
