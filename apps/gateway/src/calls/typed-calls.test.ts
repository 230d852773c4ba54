// Contract 1, "Parameters and types", over HTTP: a call whose parameters violate the function's schema is refused before it is accepted.
import type { AppDescription, FunctionSpec } from '@inference-proxy/contracts';
import { errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import { app } from '../../test/played-worker.ts';

const typed = (x: object): FunctionSpec => ({
  name: 'run',
  parameters: [{ name: 'x', required: true, annotation: 'int' }],
  extra: false,
  schema: {
    kind: 'value',
    parameters: { type: 'object', properties: { x }, required: ['x'], additionalProperties: false },
  },
});
const typedApp = (x: object, more: Partial<AppDescription> = {}): AppDescription =>
  app({ app: 'typed', functions: [typed(x)], ...more });

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  await gateway.worker.start(
    typedApp({ type: 'integer' }),
    app({ app: 'site', kind: 'server', functions: [] }),
    app({ app: 'remote', functions: [typed({ $ref: 'https://example.com/x.json' })] }),
  );
});
afterAll(() => gateway.stop());

const PATH = `/v4/${PROJECT}/typed/run`;
const call = (body: string, headers: Record<string, string> = {}, path = PATH) =>
  gateway.request(path, { body, headers });

test('a violation returns 422 with details, and creates no run', async () => {
  const before = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs?app=typed`)).text).runs.length as number;
  const answer = await call('{"x": "1", "y": 2}');
  expect(answer.status).toBe(422);
  expect(JSON.parse(answer.text)).toEqual({
    error: {
      code: 'invalid_input',
      message: 'wrong parameters for run: y (unexpected), x (int_type)',
      retryable: false,
      details: [
        { loc: ['body', 'y'], msg: 'Unexpected parameter', type: 'unexpected' },
        { loc: ['body', 'x'], msg: 'Input should be a valid integer', type: 'int_type' },
      ],
    },
  });
  const runs = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs?app=typed`)).text).runs as unknown[];
  expect(runs).toHaveLength(before);
});

test('a violation with `async=true` is refused too', async () => {
  expect((await call('{}', {}, `${PATH}?async=true`)).status).toBe(422);
});

test('a valid body reaches the function unchanged', async () => {
  const answering = call('{ "x": 1.0 }');
  const run = await gateway.worker.next('typed');
  expect(run.params).toBe('{ "x": 1.0 }');
  await run.returns('1');
  expect((await answering).status).toBe(200);
});

test('on OpenAI paths, the parameters that the function takes are checked, and `param` names the wrong one', async () => {
  const answer = await call('{"model": "m", "x": "1"}', {}, `${PATH}/chat/completions`);
  expect(answer.status).toBe(422);
  expect(JSON.parse(answer.text).error).toMatchObject({
    code: 'invalid_input',
    type: 'invalid_request_error',
    param: 'x',
    details: [{ loc: ['body', 'x'], msg: 'Input should be a valid integer', type: 'int_type' }],
  });
  const answering = call('{"model": "m", "x": 1, "stream": false}', {}, `${PATH}/chat/completions`);
  const run = await gateway.worker.next('typed');
  expect(run.params).toBe('{"x": 1}');
  await run.returns('1');
  expect((await answering).status).toBe(200);
});

test('a refused call claims no key, and a run that exists under the key answers a call that its new schema refuses', async () => {
  const key = { 'idempotency-key': 'k1' };
  expect(errorOf(await call('{"x": "a"}', key)).code).toBe('invalid_input');
  const answering = call('{"x": 1}', key);
  const run = await gateway.worker.next('typed');
  await run.returns('"kept"');
  await answering;
  await gateway.worker.store.announce(PROJECT, typedApp({ type: 'string' }, { version: '2' }));
  await until(async () => (await versionOf('typed')) === '2');
  const replayed = await call('{"x": 1}', key);
  expect(replayed.status).toBe(200);
  expect(replayed.headers['idempotency-replayed']).toBe('true');
  expect(errorOf(await call('{"x": 2}', key)).code).toBe('idempotency_conflict');
});

/** Returns the version of an app that the gateway knows. */
async function versionOf(name: string): Promise<string | undefined> {
  const { apps } = JSON.parse((await gateway.get(`/v4/${PROJECT}`)).text) as { apps: AppDescription[] };
  return apps.find(({ app: each }) => each === name)?.version;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}

test('a custom runtime receives every body', async () => {
  const answering = call('not json', { 'content-type': 'text/plain' }, `/v4/${PROJECT}/site/run`);
  const run = await gateway.worker.next('site');
  expect(run.request.body.toString()).toBe('not json');
  await run.answers({ status: 200, headers: [], form: 'text' }, 'ok');
  expect((await answering).text).toBe('ok');
});

test('a remote reference is not followed: the function’s process judges the call, and the log has one line', async () => {
  for (let count = 0; count < 2; count++) {
    const answering = call('{"x": 1}', {}, `/v4/${PROJECT}/remote/run`);
    const run = await gateway.worker.next('remote');
    await run.returns('1');
    expect((await answering).status).toBe(200);
  }
  expect(gateway.lines.filter(({ msg }) => String(msg).startsWith('a schema cannot be checked here'))).toHaveLength(1);
});
