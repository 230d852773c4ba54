// Contract 1, 3, 4 and 6: tokens, streams through the proxy, the queue page and a webhook, in containers.
import { expect, test } from '@jest/globals';
import { DASHBOARD_TOKEN, delivered, type Here, HOOK } from './running.ts';

export function testServing(here: Here): void {
  test('prints a token, and a call with the token is answered; a call without a token is 401', async () => {
    const token = (await here.stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const headers = { authorization: `Bearer ${token}` };
    expect((await here.stack.caller.call('streams/value', { value: 1 }, { headers })).status).toBe(200);
    const refused = await here.stack.caller.call('streams/value', 'x'.repeat(200_000), {
      headers: { authorization: '' },
    });
    expect(refused.status).toBe(401);
    expect(refused.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('the dispatcher serves the queue page to callers with the token', async () => {
    const [dispatcher = ''] = await here.stack.containers('dispatcher');
    const asked = `fetch('http://127.0.0.1:9466/queues', { headers: { authorization: process.argv[1] } })
      .then(async (answer) => console.log(answer.status, await answer.text()))`;
    const page = (token: string) => here.stack.docker(['exec', dispatcher, 'node', '-e', asked, `Bearer ${token}`]);
    expect(await page(DASHBOARD_TOKEN)).toMatch(/^200 .*<title>/s);
    expect(await page('another-token-of-length')).toMatch(/^401 /);
  });

  test('streams through the proxy item by item, with and without gzip, and a disconnect ends the run', async () => {
    for (const encoding of ['identity', 'gzip']) {
      const headers = { 'accept-encoding': encoding };
      const { answer, events, runId } = await here.stack.caller.stream(
        'streams/sleeping',
        { n: 4, seconds: 1 },
        { headers },
      );
      expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
      expect(answer.headers['content-encoding']).toBe(encoding === 'gzip' ? 'gzip' : undefined);
      expect([answer.headers['x-accel-buffering'], answer.headers.server]).toEqual(['no', 'inference-proxy']);
      expect(await events.next()).toBe('data: 0');
      // The run is still running, so the function has yet to yield the other items.
      expect((await here.stack.caller.lookUp(runId)).status).toBe('running');
      expect(await events.rest()).toEqual(['data: 1', 'data: 2', 'data: 3']);
    }
    const { events, runId } = await here.stack.caller.stream('streams/sleeping', { n: 600, seconds: 0.1 });
    await events.next();
    events.leave();
    expect((await here.stack.caller.ended(runId)).status).toBe('cancelled');
  });

  test('delivers a signed webhook, which the example receiver verifies', async () => {
    const query = `?webhookEndpoint=${encodeURIComponent(HOOK.url)}`;
    const headers = { 'x-webhook-secret': HOOK.secret };
    const answer = await here.stack.caller.call('streams/sleeping', { n: 2, seconds: 0 }, { query, headers });
    const { run_id: runId } = JSON.parse(answer.text) as { run_id: string };
    expect(await delivered(here.stack, [runId])).toContain(answer.text);
  });
}
