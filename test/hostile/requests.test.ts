// Contract 1 and 2: the gateway answers any bytes in the contract's shape, or closes the connection. Other callers are not disturbed.
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { codeOf, exchange, type RawAnswer } from './raw-connection.ts';
import { type Expected, hostileRequests } from './requests.ts';

let stack: TestStack;
let token: string;
beforeAll(async () => {
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/streams' } });
  token = signToken(stack.jwtSecret, { project: 'demo', ttlS: 3600 });
  await new Caller(stack.port, stack.jwtSecret).ready('streams');
});
afterAll(() => stack.stop());

const TOKEN = '<token>';
const rows = hostileRequests(TOKEN);

const seen = (answer: RawAnswer): Expected =>
  answer.status < 400 ? [answer.status] : [answer.status, codeOf(answer) ?? 'no code'];

describe('a request', () => {
  test.each(rows.map((row) => [row.name, row] as const))('%s', async (_, { bytes, expected, also }) => {
    const answers = await exchange(stack.port, bytes.replaceAll(TOKEN, token));
    expect(answers.length).toBeLessThan(2);
    const [answer] = answers;
    expect(expected).toContainEqual(answer === undefined ? 'closed' : seen(answer));
    if (answer === undefined) return;
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers.connection).toBe('close');
    expect(also === undefined || also({ ...answer, body: answer.body.replaceAll(token, TOKEN) })).toBe(true);
  });
});

test('none of the requests caused an internal error, and a good call is served', async () => {
  const answer = await new Caller(stack.port, stack.jwtSecret).call('streams/value', { value: 7 });
  expect(answer.status).toBe(200);
  expect(stack.logs()).not.toContain('internal error');
  expect(stack.logs()).not.toContain('nothing handled');
});
