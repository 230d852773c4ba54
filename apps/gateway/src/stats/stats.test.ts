// Contract 5, "Statistics": `GET /v4/{project}/stats`.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
});
afterAll(() => gateway.stop());

const stats = (query = '', headers = {}, project = PROJECT) => gateway.get(`/v4/${project}/stats${query}`, headers);

test('calls, errors and latencies of an app appear with a value for each minute', async () => {
  const [succeeds, fails] = [gateway.call(), gateway.call()];
  await (await gateway.worker.next()).returns('1');
  await (await gateway.worker.next()).fails({ code: 'function_error', message: 'no' });
  await Promise.all([succeeds, fails]);
  const answer = await stats();
  expect(answer.status).toBe(200);
  const { since, until, step_s, apps, cursor } = JSON.parse(answer.text);
  expect([Date.parse(until) - Date.parse(since), step_s, cursor]).toEqual([3_600_000, 60, undefined]);
  expect(apps).toEqual([
    expect.objectContaining({
      app: 'chat',
      calls: 2,
      errors: 1,
      p50_ms: expect.any(Number),
      p99_ms: expect.any(Number),
    }),
  ]);
  const { series } = apps[0];
  expect(Object.values<unknown[]>(series).map((values) => values.length)).toEqual([60, 60, 60, 60]);
  // A minute may end between the two calls.
  expect(series.calls.slice(-2).reduce((sum: number, value: number) => sum + value)).toBe(2);
  expect(series.p50_ms[0]).toBeNull();
  const filtered = JSON.parse((await stats('?app=other')).text);
  expect(filtered.apps).toEqual([]);
});

test('a repeated request with the tag of the answer returns 304 without a body', async () => {
  const first = await stats('?window=86400');
  const tag = { 'if-none-match': String(first.headers.etag) };
  const again = await stats('?window=86400', tag);
  expect([again.status, again.text, again.headers.etag]).toEqual([304, '', first.headers.etag]);
  expect((await stats('?window=86400', { 'if-none-match': `"other", W/${first.headers.etag}` })).status).toBe(304);
  expect((await stats('?window=86400', { 'if-none-match': '"other"' })).status).toBe(200);
});

test.each([
  ['window=60', 1, 60],
  ['window=61', 2, 60],
  ['window=7200', 120, 60],
  ['window=7201', 25, 300],
  ['window=86400', 96, 900],
])('%s has %i steps of %i s', async (query, steps, stepS) => {
  const { since, until, step_s } = JSON.parse((await stats(`?${query}`)).text);
  expect([(Date.parse(until) - Date.parse(since)) / 1000 / stepS, step_s]).toEqual([steps, stepS]);
});

test.each(['window=59', 'window=86401', 'window=1h', 'window=', 'window=60&window=60', 'limit=0', 'app='])(
  '%s returns 400',
  async (query) => {
    expect((await stats(`?${query}`)).status).toBe(400);
  },
);

test('another project has its own numbers, and its token cannot read these', async () => {
  const everybody = { authorization: `Bearer ${token({ project_id: '*' })}` };
  expect(JSON.parse((await stats('', everybody, 'nobody')).text).apps).toEqual([]);
  expect((await stats('', { authorization: `Bearer ${token({ project_id: 'nobody' })}` })).status).toBe(403);
  expect((await stats('', { authorization: `Bearer ${token({ scope: 'call' })}` })).status).toBe(403);
  expect((await stats('', { authorization: '' })).status).toBe(401);
});
