// Contract 1, "OpenAI clients", over HTTP.
import { errorKinds } from '@inference-proxy/contracts';
import { errorOf, type RequestOptions } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
});
afterAll(() => gateway.stop());

const at = (path: string, body: object, more: RequestOptions = {}) =>
  gateway.request(`/v4/${PROJECT}/chat/run/${path}`, { body: JSON.stringify(body), ...more });

test.each(['chat/completions', 'completions', 'embeddings', 'responses'])(
  '%s calls the function with the parameters that it takes, and returns its bare result',
  async (path) => {
    const answering = at(
      path,
      { model: 'm', text: 'hi', temperature: 1 },
      { headers: { accept: 'text/event-stream' } },
    );
    const run = await gateway.worker.next();
    expect(run.params).toBe('{"text":"hi"}');
    await run.returns('{"id":"1","n":1.0}');
    const answer = await answering;
    expect(answer.status).toBe(200);
    expect(answer.text).toBe('{"id":"1","n":1.0}');
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  },
);

test.each([
  ['chat/completions', ['{"n":1}', '{"n":2}'], 'data: {"n":1}\n\ndata: {"n":2}\n\ndata: [DONE]\n\n'],
  ['completions', [], 'data: [DONE]\n\n'],
  ['chat/completions', ['{"n":1}', '[DONE]'], 'data: {"n":1}\n\ndata: [DONE]\n\n'],
  ['responses', ['{"type":"response.created"}'], 'data: {"type":"response.created"}\n\n'],
])(
  '%s with `stream` in the body streams %j whatever `Accept` says, with at most one [DONE]',
  async (path, items, text) => {
    const answering = at(path, { stream: true, text: 'x' });
    const run = await gateway.worker.next();
    if (items.length > 0) await run.items(items);
    await run.stops();
    const answer = await answering;
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(answer.text).toBe(text);
  },
);

test.each(['data: {"n":1}\n\ndata: [DONE]\n\n', 'data:[DONE]\r\n\r\n', 'id: 7\ndata: [DONE]\n\n'])(
  'ready-made events that end with %j get no second [DONE]',
  async (text) => {
    const answering = at('chat/completions', { stream: true, text: 'x' });
    const run = await gateway.worker.next();
    await run.items([text], 'm');
    await run.stops();
    expect((await answering).text).toBe(text);
  },
);

test('a text that only ends with [DONE] is not the end mark', async () => {
  const answering = at('chat/completions', { stream: true, text: 'x' });
  const run = await gateway.worker.next();
  await run.items(['say [DONE]']);
  await run.stops();
  expect((await answering).text).toBe('data: say [DONE]\n\ndata: [DONE]\n\n');
});

test('a failure in a stream is an event in the form of OpenAI clients, without [DONE]', async () => {
  const answering = at('chat/completions', { stream: true, text: 'x' });
  const run = await gateway.worker.next();
  await run.items(['{"n":1}']);
  await run.fails({ code: 'replica_crashed', message: 'died' });
  const { text } = await answering;
  const [, data = ''] = /event: error\ndata: (.*)\n\n$/.exec(text) ?? [];
  expect(JSON.parse(data)).toMatchObject({
    run_id: run.taken.runId,
    error: { code: 'replica_crashed', type: 'server_error', param: null },
  });
  expect(text).not.toContain('[DONE]');
});

test('a failed run returns its envelope with `type` and `param`', async () => {
  const details = [{ loc: ['body', 'text'], msg: 'Expected a string.', type: 'string' }] as const;
  const answering = at('chat/completions', { text: 1 });
  const run = await gateway.worker.next();
  await run.fails({ code: 'invalid_input', message: 'no', details });
  const answer = await answering;
  expect(answer.status).toBe(422);
  expect(JSON.parse(answer.text)).toMatchObject({
    run_id: run.taken.runId,
    status: 'failed',
    error: { code: 'invalid_input', type: 'invalid_request_error', param: 'text' },
  });
});

test.each([
  ['a token is missing', { headers: { authorization: '' } }, 'authentication_error'],
  ['the body is not an object', { body: '[]' }, 'invalid_request_error'],
  ['the method is not POST', { method: 'GET', body: '' }, 'invalid_request_error'],
])('if %s, the error has a type too', async (_, more, type) => {
  const answer = await at('chat/completions', {}, more);
  expect(errorOf(answer)).toMatchObject({ type, param: null });
});

test.each([
  ['function_error', 'false'],
  ['out_of_memory', 'false'],
  ['output_too_large', 'false'],
  ['cancelled', 'false'],
  ['replica_crashed', 'true'],
  ['worker_lost', 'true'],
  ['timed_out', 'true'],
] as const)('a run that ended with %s is answered with x-should-retry: %s', async (code, retry) => {
  for (const body of [{ text: 'x' }, { text: 'x', stream: true }]) {
    for (const path of ['chat/completions', 'completions', 'embeddings', 'responses']) {
      const answering = at(path, body);
      await (await gateway.worker.next()).fails({ code, message: 'no' });
      const { status, headers } = await answering;
      expect([status, headers['x-should-retry']]).toEqual([errorKinds[code].status, retry]);
    }
  }
});

test.each([
  [503, 'true'],
  [429, 'true'],
  [404, 'false'],
])('an exception with the status %i is answered with x-should-retry: %s', async (status, retry) => {
  const answering = at('chat/completions', { text: 'x' });
  await (await gateway.worker.next()).fails({ code: 'function_error', message: 'no', status });
  const answer = await answering;
  expect([answer.status, answer.headers['x-should-retry']]).toEqual([status, retry]);
});

test('an answer without an error and an answer on another path have no x-should-retry', async () => {
  const answering = at('chat/completions', { text: 'x' });
  await (await gateway.worker.next()).returns('{"id":"1"}');
  expect((await answering).headers['x-should-retry']).toBeUndefined();
  const calling = gateway.call();
  await (await gateway.worker.next()).fails({ code: 'function_error', message: 'no' });
  expect((await calling).headers['x-should-retry']).toBeUndefined();
});

test('without `stream`, the chunks of a generator become one completion, and other items become a list', async () => {
  const chunk = { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'a' } }] };
  for (const [path, items, expected] of [
    ['chat/completions', [chunk, chunk], { object: 'chat.completion', choices: [{ message: { content: 'aa' } }] }],
    ['chat/completions', [{ n: 1 }, { n: 2 }], [{ n: 1 }, { n: 2 }]],
    ['completions', [chunk], [chunk]],
    ['responses', [chunk], [chunk]],
  ] as const) {
    const answering = at(path, { text: 'x' });
    const run = await gateway.worker.next();
    await run.items(
      items.map((item) => JSON.stringify(item)),
      'j',
    );
    await run.stops();
    expect(JSON.parse((await answering).text)).toMatchObject(expected);
  }
});

test('the only model of a function is the function itself', async () => {
  const answer = await gateway.get(`/v4/${PROJECT}/chat/run/models`);
  expect(JSON.parse(answer.text)).toEqual({
    object: 'list',
    data: [{ id: 'run', object: 'model', created: 0, owned_by: `${PROJECT}/chat` }],
  });
  const one = await gateway.get(`/v4/${PROJECT}/chat/run/models/run`);
  expect(JSON.parse(one.text)).toEqual({ id: 'run', object: 'model', created: 0, owned_by: `${PROJECT}/chat` });
  const other = await gateway.get(`/v4/${PROJECT}/chat/run/models/org%2Fother`);
  expect(other.status).toBe(404);
  expect(errorOf(other)).toMatchObject({ code: 'not_found', type: 'not_found_error', param: null });
  const posted = await gateway.request(`/v4/${PROJECT}/chat/run/models/run`, { method: 'POST', body: '' });
  expect([posted.status, posted.headers.allow]).toEqual([405, 'GET, HEAD']);
  const unknown = await gateway.get(`/v4/${PROJECT}/chat/nothing/models`);
  expect(unknown.status).toBe(404);
  expect(errorOf(unknown)).toMatchObject({ code: 'not_found', type: 'not_found_error' });
});

test('a repeated key returns the same run in the same form', async () => {
  const headers = { 'idempotency-key': 'once' };
  const answering = at('completions', { text: 'a', seed: 1 }, { headers });
  const run = await gateway.worker.next();
  await run.returns('{"id":"a"}');
  expect((await answering).text).toBe('{"id":"a"}');
  const again = await at('completions', { text: 'a', seed: 1 }, { headers });
  expect(again.headers['idempotency-replayed']).toBe('true');
  expect(again.text).toBe('{"id":"a"}');
  const other = await at('completions', { text: 'a', seed: 2 }, { headers });
  expect(errorOf(other).code).toBe('idempotency_conflict');
});
