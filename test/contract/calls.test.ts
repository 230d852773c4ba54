// Contract 1: calling a function. Tokens, bodies, rejected calls, webhook URLs, look-ups, and the list of a project's apps.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { fileSays } from '../client/until.ts';
import { MAX_BODY_BYTES } from '../stack/shared-settings.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('calls', ['streams', 'broken'], { broken: 'broken' });
  ({ caller } = stack);
});
afterAll(() => stack.leave());

function expectError(answer: Answer, status: number, code: string): void {
  expect(answer.status).toBe(status);
  expect(errorOf(answer)).toMatchObject({ code, message: expect.stringMatching(/./), retryable: expect.any(Boolean) });
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer.headers['x-request-id']).toMatch(UUID_V7);
}

describe('a body', () => {
  const call = (body: string | undefined, type: string): Promise<Answer> =>
    caller.request(`${caller.path}/streams/echo`, {
      headers: { 'content-type': type },
      ...(body !== undefined && { body }),
    });

  test('is a JSON object; a missing body is {}', async () => {
    const answer = await caller.request(`${caller.path}/streams/echo`);
    expect(JSON.parse(answer.text)).toMatchObject({ status: 'succeeded', result: {} });
    expect((await call('{"a":1}', 'application/json; charset=utf-8')).status).toBe(200);
  });

  test.each(['[1]', '"text"', 'null', '1', '{"a":', ' ', '{"a":NaN}'])('%j is 400', async (body) => {
    expectError(await caller.call('streams/echo', body), 400, 'invalid_request');
  });

  test('of another type is 415', async () => {
    expectError(await call('{}', 'text/plain'), 415, 'unsupported_media_type');
  });

  test('over MAX_BODY_BYTES is 413; a body of MAX_BODY_BYTES is accepted', async () => {
    const padded = (bytes: number): string => `{"a":"${'x'.repeat(bytes - 8)}"}`;
    expectError(await caller.call('streams/echo', padded(MAX_BODY_BYTES + 1)), 413, 'payload_too_large');
    expect((await caller.call('streams/echo', padded(MAX_BODY_BYTES))).status).toBe(200);
  });

  test('reaches the function unchanged: any key, large integers, 1.0', async () => {
    const params =
      '{"__proto__":{"x":1},"constructor":2,"n":12345678901234567890123,"f":1.0,"s":"naïve 東京 🚀\\u0000"}';
    const answer = await caller.call('streams/echo', params);
    expect(answer.text).toContain(`"result":${params},`);
  });

  test('with a repeated key has the last value, as in Python’s JSON parser', async () => {
    expect((await caller.call('streams/echo', '{"a":1,"a":2}')).text).toContain('"result":{"a":2},');
  });

  test('with missing or unknown parameters is 422 with details', async () => {
    const answer = await caller.call('streams/value', { other: 1 });
    expectError(answer, 422, 'invalid_input');
    expect(errorOf(answer).details).toEqual([
      { loc: ['body', 'value'], msg: expect.any(String), type: 'missing' },
      { loc: ['body', 'other'], msg: expect.any(String), type: 'unexpected' },
    ]);
  });
});

describe('names and methods that do not exist', () => {
  test.each(['streams/_hidden', 'streams/_mark', 'streams/nothing', 'nothing/run', 'runs/run', 'deliveries/run'])(
    '%s is 404, also with async=true',
    async (fn) => {
      expectError(await caller.call(fn), 404, 'not_found');
      expectError(await caller.call(fn, {}, { query: '?async=true' }), 404, 'not_found');
    },
  );

  test('an unknown project is 404', async () => {
    const everybody = new Caller(stack.port, stack.jwtSecret, '*');
    expectError(await everybody.request('/v4/nobody/streams/value'), 404, 'not_found');
    expectError(await everybody.request('/v4/nobody', { method: 'GET' }), 404, 'not_found');
  });

  test('other methods are 405 with Allow', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const answer = await caller.request(`${caller.path}/streams/value`, { method });
      expectError(answer, 405, 'method_not_allowed');
      expect(answer.headers.allow).toBe('POST');
    }
  });

  test('a websocket is rejected with 501', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket' };
    expectError(
      await caller.request(`${caller.path}/streams/value`, { method: 'GET', headers }),
      501,
      'not_implemented',
    );
  });

  test('an app that cannot be imported is 503 with the reason', async () => {
    const answer = await caller.call('broken/run');
    expectError(answer, 503, 'app_failed_to_start');
    expect(errorOf(answer)).toMatchObject({
      retryable: true,
      message: expect.stringContaining('nothing_of_that_name'),
    });
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });
});

describe('a webhook URL is checked before a run is stored', () => {
  test.each([
    ['an address of the private network', 'http://10.0.0.1/'],
    ['the metadata address', 'http://169.254.169.254/latest'],
    ['another scheme', 'ftp://example.com/'],
    ['credentials', 'http://user:secret@example.com/'],
    ['a text that is not a URL', 'nonsense'],
    ['an empty text', ''],
  ])('%s is 400', async (_, url) => {
    const started = join(stack.marksDir, `forbidden-${encodeURIComponent(url)}`);
    const query = `?webhookEndpoint=${encodeURIComponent(url)}`;
    expectError(await caller.call('streams/waits', { gate: '/', started }, { query }), 400, 'invalid_request');
    expectError(
      await caller.call('streams/waits', { gate: '/', started }, { query: `${query}&async=true` }),
      400,
      'invalid_request',
    );
    // A run that was accepted before this call has started by the end of this call.
    await caller.call('streams/value', { value: 1 });
    await expect(writeFile(started, '', { flag: 'wx' })).resolves.toBeUndefined();
  });

  test('a repeated URL, and an empty or repeated secret, is 400', async () => {
    const query = '?webhookEndpoint=http%3A%2F%2F127.0.0.1%3A9%2F';
    const call = (query: string, secret: string | string[]): Promise<Answer> =>
      caller.call('streams/value', { value: 1 }, { query, headers: { 'x-webhook-secret': secret } });
    expectError(await call(`${query}&webhookEndpoint=http%3A%2F%2F127.0.0.1%3A9%2F`, 'a'), 400, 'invalid_request');
    expectError(await call(query, '  '), 400, 'invalid_request');
    expectError(await call(query, ['a', 'b']), 400, 'invalid_request');
    expect((await call('', '')).status).toBe(200);
  });
});

describe('an asynchronous call', () => {
  test.each([
    ['async=true', { query: '?async=true' }, undefined],
    ['Prefer: respond-async', { headers: { prefer: 'respond-async' } }, 'respond-async'],
  ])(
    'with %s is answered with 202 immediately, and a look-up returns the result later',
    async (how, options, applied) => {
      const [gate, started] = [join(stack.marksDir, `gate-${how}`), join(stack.marksDir, `started-${how}`)];
      const answer = await caller.call('streams/waits', { gate, started }, options);
      expect(answer.status).toBe(202);
      const { run_id: runId } = JSON.parse(answer.text) as { run_id: string };
      expect(JSON.parse(answer.text)).toEqual({ run_id: runId });
      expect(answer.headers.location).toBe(`${caller.path}/runs/${runId}`);
      expect(answer.headers['x-request-id']).toBe(runId);
      expect(answer.headers['preference-applied']).toBe(applied);
      // The function received the same run_id as the caller.
      expect(await fileSays(started)).toBe(runId);
      expect(await caller.lookUp(runId)).toMatchObject({
        run_id: runId,
        status: 'running',
        app: 'streams',
        function: 'waits',
      });
      await writeFile(gate, '');
      expect(await caller.ended(runId)).toMatchObject({ status: 'succeeded', result: 'waited' });
    },
  );

  test('a look-up returns the items of a streamed run, and the error of a failed run', async () => {
    const { events, runId } = await caller.stream('streams/items', { items: ['a', 1.5] });
    await events.rest();
    const found = await caller.ended(runId);
    expect(found).toMatchObject({ status: 'succeeded', items: 2, result: ['a', 1.5] });
    const times = ['accepted_at', 'queued_at', 'started_at', 'first_item_at', 'ended_at'].map((name) =>
      String(found[name]),
    );
    expect([...times].sort()).toEqual(times);
    const failed = await caller.call('streams/raises', {});
    expect(await caller.lookUp(String(failed.headers['x-request-id']))).toMatchObject({
      status: 'failed',
      error: errorOf(failed),
    });
  });

  test('the look-up of an unknown run, or of a run of another project, is 404', async () => {
    const runId = String((await caller.call('streams/value', { value: 1 })).headers['x-request-id']);
    const other = new Caller(stack.port, stack.jwtSecret, 'other');
    for (const path of [`/v4/other/runs/${runId}`, '/v4/other/runs/nothing'])
      expectError(await other.request(path, { method: 'GET' }), 404, 'not_found');
    expectError(await other.request(`${caller.path}/runs/${runId}`, { method: 'GET' }), 403, 'forbidden');
  });
});

test('a parameter named run_id gets the run’s id unless the caller sends a value', async () => {
  const answer = await caller.call('streams/named');
  const { result, run_id: runId } = JSON.parse(answer.text) as { result: string; run_id: string };
  expect(result).toBe(runId);
  expect(JSON.parse((await caller.call('streams/named', { run_id: 'mine' })).text).result).toBe('mine');
});

test('a project lists its apps with functions, parameters and state, and the error of a broken app', async () => {
  const other = await joinSharedStack('calls-other', ['../other/hello']);
  expect(JSON.parse((await other.caller.request('/v4/calls-other', { method: 'GET' })).text)).toEqual({
    project: 'calls-other',
    apps: [
      {
        app: 'hello',
        state: 'ready',
        version: expect.any(String),
        functions: [
          {
            name: 'greet',
            doc: 'Says hello.',
            parameters: [
              { name: 'name', required: true, annotation: 'str' },
              { name: 'punctuation', required: false, default: '!', annotation: 'str' },
            ],
            extra: false,
            schema: {
              kind: 'value',
              summary: 'Says hello.',
              parameters: {
                type: 'object',
                properties: { name: { type: 'string' }, punctuation: { type: 'string', default: '!' } },
                required: ['name'],
                additionalProperties: false,
              },
            },
          },
        ],
      },
    ],
  });
  const { apps } = JSON.parse((await caller.request(caller.path, { method: 'GET' })).text) as {
    apps: { app: string; functions: { name: string }[] }[];
  };
  expect(apps.map(({ app }) => app)).toEqual(['broken', 'streams']);
  expect(apps[0]).toMatchObject({
    state: 'broken',
    error: { code: 'app_failed_to_start', message: expect.stringContaining('nothing_of_that_name') },
  });
  expect(apps[1]?.functions.map(({ name }) => name)).not.toContain('_hidden');
  await other.leave();
});

test('health pages need no token', async () => {
  for (const path of ['/healthz', '/readyz']) {
    const answer = await caller.request(path, { method: 'GET', headers: { authorization: '' } });
    expect(answer.status).toBe(200);
    expect(answer.headers['x-request-id']).toMatch(UUID_V7);
  }
});
