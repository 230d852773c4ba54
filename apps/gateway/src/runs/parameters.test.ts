// Contract 5, "Parameters of a run": `GET /runs/{run_id}/parameters`.
import { errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PROJECT, token } from '../../test/gateway-under-test.ts';
import { JSON_HEAD, SiteUnderTest } from '../../test/site-under-test.ts';

let site: SiteUnderTest;
beforeAll(async () => {
  site = await SiteUnderTest.start();
});
afterAll(() => site.gateway.stop());

const parameters = (runId: unknown, headers = {}) =>
  site.gateway.get(`/v4/${PROJECT}/runs/${runId}/parameters`, headers);

async function accepted(body: string): Promise<string> {
  const answer = await site.gateway.call({ query: '?async=true', body });
  expect(answer.status).toBe(202);
  return JSON.parse(answer.text).run_id;
}

test('the parameters are the bytes of the call, also after the end of the run', async () => {
  const body = '{ "text": "1.0",  "large": 9007199254740993, "float": 1.0 }';
  const runId = await accepted(body);
  const answer = await parameters(runId);
  expect([answer.status, answer.text, answer.headers['x-parameters']]).toEqual([200, body, 'json']);
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  });
  const run = await site.gateway.worker.next();
  expect((await parameters(runId)).text).toBe(body);
  await run.returns('"the result"');
  const after = await parameters(runId);
  expect([after.status, after.text, after.headers['x-parameters']]).toEqual([200, body, 'json']);
});

test('parameters stay for a run that was cancelled in the queue', async () => {
  const runId = await accepted('{"text":"never taken"}');
  const cancelled = await site.gateway.request(`/v4/${PROJECT}/runs/${runId}/cancel`, { method: 'POST' });
  expect(cancelled.status).toBe(202);
  expect((await parameters(runId)).text).toBe('{"text":"never taken"}');
});

test('parameters over 64 KiB are not returned, and the message says so', async () => {
  const runId = await accepted(JSON.stringify({ text: 'x'.repeat(70_000) }));
  const answer = await parameters(runId);
  expect(answer.status).toBe(404);
  expect(errorOf(answer)).toMatchObject({ code: 'not_found', message: expect.stringContaining('64 KiB') });
  await (await site.gateway.worker.next()).returns('1');
  const after = await parameters(runId);
  expect(after.status).toBe(404);
  expect(errorOf(after).message).toContain('64 KiB');
});

test('a request to a web server has no parameters', async () => {
  const asked = site.get('/path', { 'x-key': 'a credential' });
  const run = await site.next();
  const open = await parameters(run.taken.runId);
  expect(open.status).toBe(404);
  expect(open.text).not.toContain('a credential');
  await run.answers(JSON_HEAD, '1');
  await asked;
  expect((await parameters(run.taken.runId)).status).toBe(404);
});

test('another project and a token that may only call cannot read parameters', async () => {
  const runId = await accepted('{"text":"private"}');
  const other = { authorization: `Bearer ${token({ project_id: 'other' })}` };
  expect((await parameters(runId, other)).status).toBe(403);
  expect((await site.gateway.get(`/v4/other/runs/${runId}/parameters`, other)).status).toBe(404);
  expect((await parameters(runId, { authorization: `Bearer ${token({ scope: 'call' })}` })).status).toBe(403);
  expect((await parameters('01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17')).status).toBe(404);
});
