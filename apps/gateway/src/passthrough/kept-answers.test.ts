// Contract 5: look-up, resume and repeat of the answers of apps that are web servers.
import { errorOf, textOf } from '@inference-proxy/test/client';
import { opening } from '@inference-proxy/test/streams';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import { head, SITE, SiteUnderTest, SSE } from '../../test/site-under-test.ts';

let site: SiteUnderTest;
let gateway: GatewayUnderTest;
beforeAll(async () => {
  site = await SiteUnderTest.start();
  gateway = site.gateway;
});
afterAll(() => gateway.stop());

test('a call with `async=true` is answered at once, and the look-up has status, content type and body', async () => {
  const answer = await gateway.request(`${SITE}/report?async=true`, { body: 'x' });
  const run = await site.next();
  expect(answer).toMatchObject({ status: 202, headers: { location: `/v4/${PROJECT}/runs/${run.taken.runId}` } });
  await run.answers(head('json', 'application/json', { status: 201 }), '{"n": 1.0}');
  expect((await gateway.get(`/v4/${PROJECT}/runs/${run.taken.runId}`)).text).toMatch(
    /"function":"report","status":"succeeded".*"status_code":201,"content_type":"application\/json".*"result":{"n": 1\.0}}$/,
  );
  const { runs } = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs?app=site&function=report`)).text);
  expect(runs).toMatchObject([{ run_id: run.taken.runId, function: 'report', status_code: 201 }]);
});

test.each([
  ['text', 'text/plain', 'one\ntwo', 'one\ntwo', 'data: one\ndata: two\n\n'],
  ['binary', 'image/png', Buffer.from([0, 255]), 'AP8=', 'data: AP8=\n\n'],
  ['json', 'application/json', '{\n"n": 1.0\n}', { n: 1 }, 'data: {\ndata: "n": 1.0\ndata: }\n\n'],
] as const)(
  'look-up and resume return a kept answer in the service’s own form: %s',
  async (form, type, body, result, events) => {
    const { headers } = await gateway.request(`${SITE}/kept?onDisconnect=continue&async=true`);
    const runId = headers['x-request-id'];
    await (await site.next()).answers(head(form, type), body);
    expect(await site.lookUp(runId)).toMatchObject({ result, status_code: 200, content_type: type });
    expect((await gateway.get(`/v4/${PROJECT}/runs/${runId}/stream`)).text).toBe(`${opening(0)}id: 1\n${events}`);
  },
);

test('a server’s stream can be resumed in the service’s own form, with numbers', async () => {
  const answering = site.get('/events?onDisconnect=continue');
  const run = await site.next();
  await run.begins(SSE);
  await run.items(['one']);
  await run.items(['event: tick\nid: theirs\ndata: two\n\n'], 'm');
  await run.stops(SSE);
  await textOf(await answering);
  const { text } = await gateway.get(`/v4/${PROJECT}/runs/${run.taken.runId}/stream`);
  expect(text).toBe(`${opening(0)}id: 1\ndata: one\n\nid: 2\nevent: tick\ndata: two\n\n`);
});

test('a repeated request under a key gets the kept answer, a stream from its start; another request is rejected', async () => {
  const keyed = (path: string, body: string) =>
    gateway.request(`${SITE}${path}`, { body, headers: { 'idempotency-key': 'k', 'content-type': 'text/plain' } });
  const first = keyed('/pay?x=1&onDisconnect=9', 'body');
  const run = await site.next();
  await run.begins(head('sse', 'text/event-stream', { status: 201 }));
  await run.items(['one']);
  await run.stops(head('sse', 'text/event-stream', { status: 201 }));
  await first;
  expect(await keyed('/pay?x=1&onDisconnect=9', 'body')).toMatchObject({
    status: 201,
    text: 'data: one\n\n',
    headers: { 'idempotency-replayed': 'true', 'x-request-id': run.taken.runId },
  });
  for (const [path, body] of [
    ['/pay?x=2', 'body'],
    ['/pay?x=1', 'other'],
  ] as const) {
    expect(errorOf(await keyed(path, body)).code).toBe('idempotency_conflict');
  }
});
