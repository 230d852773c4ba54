import { type Answer, errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import { app, type PlayedRun } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
});
afterAll(() => gateway.stop());

/** Lets the worker play the run of an open call, and returns the answer of the call. */
async function answered(calling: Promise<Answer>, play: (run: PlayedRun) => Promise<unknown>): Promise<Answer> {
  const run = await gateway.worker.next();
  await play(run);
  return calling;
}

test('a call is answered with the envelope, and its request id equals the run’s id', async () => {
  const answer = await answered(gateway.call(), (run) => run.returns('{"said":"hello"}'));
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  const body = JSON.parse(answer.text) as Record<string, unknown>;
  expect(body).toEqual({
    run_id: answer.headers['x-request-id'],
    status: 'succeeded',
    result: { said: 'hello' },
    run_time_ms: 1.5,
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
});

test('the caller’s bytes reach the function unchanged, and the result’s bytes reach the caller unchanged', async () => {
  const body = '{ "n": 12345678901234567890, "f": 1.0, "__proto__": {"x": 1}, "constructor": 2, "é": "\u2028" }';
  let seen = '';
  const answer = await answered(gateway.call({ body }), (run) => {
    seen = run.params;
    return run.returns('[12345678901234567890,1.0]');
  });
  expect(seen).toBe(body);
  expect(answer.text).toContain('"result":[12345678901234567890,1.0],');
});

test('a call without a body has no parameters', async () => {
  let seen = '';
  const path = `/v4/${PROJECT}/chat/run`;
  const answer = await answered(gateway.request(path), (run) => {
    seen = run.params;
    return run.returns('null');
  });
  expect(seen).toBe('{}');
  expect(JSON.parse(answer.text)).toMatchObject({ result: null });
});

test('a generator called without a stream is answered with the list of its items', async () => {
  const answer = await answered(gateway.call(), async (run) => {
    await run.items(['a', 'b"']);
    await run.items(['1.0', '{"x":2}'], 'j');
    await run.items(['two\nlines'], 'm');
    await run.stops();
  });
  expect(answer.text).toContain('"result":["a","b\\"",1.0,{"x":2},"two\\nlines"]');
});

test('a result with a `status_code` sets the HTTP status', async () => {
  const answer = await answered(gateway.call(), (run) => run.returns('{"status_code":418}', { statusCode: 418 }));
  expect(answer.status).toBe(418);
  expect(JSON.parse(answer.text)).toMatchObject({ status: 'succeeded', result: { status_code: 418 } });
});

test.each([
  ['function_error', 500],
  ['invalid_input', 422],
  ['replica_crashed', 502],
] as const)('%s is answered with %i and the run’s envelope', async (code, status) => {
  const error = { code, message: 'no', type: 'ValueError' };
  const answer = await answered(gateway.call(), (run) => run.fails(error));
  expect(answer.status).toBe(status);
  expect(JSON.parse(answer.text)).toMatchObject({
    run_id: answer.headers['x-request-id'],
    status: 'failed',
    error: { code, message: 'no', type: 'ValueError', retryable: code === 'replica_crashed' },
  });
});

test.each(['?async=true', ''])('an asynchronous call (%p) is answered at once, and looked up later', async (query) => {
  const headers: Record<string, string> = query === '' ? { prefer: 'respond-async' } : {};
  const answer = await gateway.call({ query, headers });
  expect(answer.status).toBe(202);
  const { run_id: runId } = JSON.parse(answer.text) as { run_id: string };
  expect(answer.headers.location).toBe(`/v4/${PROJECT}/runs/${runId}`);
  expect(answer.headers['preference-applied']).toBe(query === '' ? 'respond-async' : undefined);

  const path = String(answer.headers.location);
  expect(JSON.parse((await gateway.get(path)).text)).toMatchObject({ run_id: runId, status: 'queued', items: 0 });
  const run = await gateway.worker.next();
  expect(JSON.parse((await gateway.get(path)).text)).toMatchObject({ status: 'running', app: 'chat', function: 'run' });
  await run.returns('1.0');
  const ended = await gateway.get(path);
  expect(ended.text).toContain('"result":1.0}');
  expect(JSON.parse(ended.text)).toMatchObject({ status: 'succeeded', run_time_ms: 1.5, ended_at: expect.any(String) });
});

test('a misspelt query parameter returns 400 with the right name, and the call does not run', async () => {
  for (const [query, meant] of [
    ['?asinc=true', 'async'],
    ['?webhookendpoint=https://a.example/', 'webhookEndpoint'],
    ['?ids=true&ondisconnect=continue', 'onDisconnect'],
  ]) {
    const answer = await gateway.call({ query: query ?? '' });
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(`\`${meant}\``),
    });
  }
  const calling = gateway.call({ query: '?utm_source=mail&idss=1', body: '{"text":"known"}' });
  const run = await gateway.worker.next();
  expect(run.params).toBe('{"text":"known"}');
  await run.returns('1');
  expect((await calling).status).toBe(200);
});

test('a run is cancelled when its caller disconnects', async () => {
  const controller = new AbortController();
  const call = gateway.open(`/v4/${PROJECT}/chat/run`, { body: '{}', signal: controller.signal });
  const left = call.catch((error: Error) => error.name);
  const run = await gateway.worker.next();
  const cancelled = gateway.worker.cancelled();
  controller.abort();
  expect(await cancelled).toBe(run.taken.runId);
  expect(await left).toBe('AbortError');
  await run.fails({ code: 'cancelled', message: 'cancelled' }, 'cancelled');
});

test('a promised run continues after its caller disconnects', async () => {
  const controller = new AbortController();
  const webhook = encodeURIComponent('https://example.com/hook');
  const path = `/v4/${PROJECT}/chat/run?webhookEndpoint=${webhook}`;
  const call = gateway.open(path, { body: '{}', signal: controller.signal });
  call.catch(() => {});
  const run = await gateway.worker.next();
  expect(run.taken.promised).toBe(true);
  controller.abort();
  await run.returns('"done"');
  const record = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs/${run.taken.runId}`)).text);
  expect(record).toMatchObject({ status: 'succeeded', result: 'done', webhook: { attempts: 0 } });
});

test.each([
  ['an unknown function', `/v4/${PROJECT}/chat/nothing`],
  ['a private function', `/v4/${PROJECT}/chat/_run`],
  ['an unknown app', `/v4/${PROJECT}/other/run`],
  ['a reserved app name', `/v4/${PROJECT}/deliveries/run`],
])('%s is 404, also with async', async (_, path) => {
  for (const query of ['', '?async=true']) {
    const answer = await gateway.request(path + query, { body: '{}' });
    expect(answer.status).toBe(404);
    expect(errorOf(answer)).toMatchObject({ code: 'not_found', retryable: false });
  }
});

test('a call to an app that could not start returns the reason and Retry-After', async () => {
  const error = { code: 'app_failed_to_start', message: 'no module named torch', type: 'ImportError' } as const;
  await gateway.worker.store.announce(PROJECT, app({ app: 'broken', state: 'broken', functions: [], error }));
  const answer = await eventually(
    () => gateway.request(`/v4/${PROJECT}/broken/run`, { body: '{}' }),
    ({ status }) => status === 503,
  );
  expect(errorOf(answer)).toMatchObject({ ...error, retryable: true });
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
});

/** Repeats a request until its answer is right. Announcements arrive by a channel, with a delay. */
async function eventually<T>(ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> {
  while (true) {
    const answer = await ask();
    if (right(answer)) return answer;
  }
}

test('a call to a full queue returns 429 with Retry-After', async () => {
  await gateway.worker.store.announce(PROJECT, app({ app: 'full', queueLimit: 1 }));
  const call = () => gateway.request(`/v4/${PROJECT}/full/run?async=true`, { body: '{}' });
  const answer = await eventually(call, ({ status }) => status === 429);
  expect(errorOf(answer).code).toBe('overloaded');
  expect(answer.headers['retry-after']).toBe('1');
});

test('every call logs one line', async () => {
  const answer = await answered(gateway.call(), (run) => run.returns('1'));
  const own = gateway.lines.filter(({ runId }) => runId === answer.headers['x-request-id']);
  expect(own).toMatchObject([{ msg: 'call', project: PROJECT, app: 'chat', function: 'run', status: 200 }]);
});

test('a key returns its run’s answer after the function is removed, and no new run is accepted', async () => {
  const headers = { 'idempotency-key': 'outlives its app' };
  const first = await answered(gateway.call({ headers }), (run) => run.returns('"kept"'));
  const { functions } = app();
  const error = { code: 'app_failed_to_start', message: 'import failed' } as const;
  for (const [gone, code] of [
    [app({ functions: [] }), 'not_found'],
    [app({ functions: [], state: 'broken', error }), 'app_failed_to_start'],
  ] as const) {
    await gateway.worker.store.announce(PROJECT, gone);
    let refused = await gateway.call({ headers: { 'idempotency-key': 'another' } });
    while (errorOf(refused).code !== code) refused = await gateway.call({ headers: { 'idempotency-key': 'another' } });
    const again = await gateway.call({ headers });
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    const stream = await gateway.call({ headers: { ...headers, accept: 'text/event-stream' } });
    expect(stream.text).toBe('data: kept\n\n');
    expect((await gateway.call({ headers, query: '?async=true' })).status).toBe(202);
    expect(errorOf(await gateway.call({ headers, body: '{"text":"other"}' })).code).toBe('idempotency_conflict');
    expect(errorOf(await gateway.call()).code).toBe(code);
  }
  await gateway.worker.store.announce(PROJECT, app({ functions }));
});
