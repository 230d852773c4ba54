import type { IncomingMessage } from 'node:http';
import { textOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
});
afterAll(() => gateway.stop());

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

/** Returns events as an independent parser reads them. Data that is JSON is parsed. */
async function eventsOf(answer: IncomingMessage): Promise<unknown[][]> {
  const events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => events.push(event) });
  parser.feed(await textOf(answer));
  return events.map(({ id, event, data }) => [id, event, event === 'item' ? data : JSON.parse(data)]);
}

const call = (query = ''): Promise<IncomingMessage> =>
  gateway.open(`/v4/${PROJECT}/chat/run?events=full${query}`, { body: '{}', headers: { accept: 'text/event-stream' } });

const resume = (run: PlayedRun, query = ''): Promise<IncomingMessage> =>
  gateway.open(`/v4/${PROJECT}/runs/${run.taken.runId}/stream?events=full${query}`, { method: 'GET' });

test('every event of a run is named and numbered, and an event that is not an item has the number of the last item', async () => {
  const calling = call();
  const run = await gateway.worker.next();
  const { runId } = run.taken;
  const reading = eventsOf(await calling);
  await run.prints('before');
  await run.items(['one', 'two\rlines']);
  await run.prints('between', '');
  await run.items(['{"three":3.0}'], 'j');
  await run.stops();
  const log = (text: string) => ({ stream: 'stdout', time: TIME, text });
  expect(await reading).toEqual([
    ['0', 'queued', { run_id: runId }],
    ['0', 'started', { run_id: runId, started_at: TIME }],
    ['0', 'log', log('before')],
    ['1', 'item', 'one'],
    ['2', 'item', 'two\nlines'],
    ['2', 'log', log('between')],
    ['2', 'log', log('')],
    ['3', 'item', '{"three":3.0}'],
    ['3', 'done', { run_id: runId, status: 'succeeded', run_time_ms: 1.5, timestamp: TIME }],
  ]);
});

test('the event `queued` is sent at once', async () => {
  const answer = await call('&onDisconnect=cancel');
  expect(answer.statusCode).toBe(200);
  const run = await gateway.worker.next();
  await run.stops();
  const events = await eventsOf(answer);
  expect(events.map(([id, name]) => [id, name])).toEqual([
    ['0', 'queued'],
    ['0', 'started'],
    ['0', 'done'],
  ]);
});

test('a plain value is one item', async () => {
  const calling = call();
  const run = await gateway.worker.next();
  await run.returns('{"a":1}');
  const events = await eventsOf(await calling);
  expect(events.slice(2)).toEqual([
    ['1', 'item', '{"a":1}'],
    ['1', 'done', expect.not.objectContaining({ result: expect.anything() })],
  ]);
});

test('a failure is the last event, and there is no `done`', async () => {
  const calling = call();
  const run = await gateway.worker.next();
  await run.items(['one']);
  await run.fails({ code: 'function_error', message: 'no', type: 'ValueError' });
  const events = await eventsOf(await calling);
  expect(events.slice(2)).toEqual([
    ['1', 'item', 'one'],
    [
      '1',
      'error',
      {
        run_id: run.taken.runId,
        error: { code: 'function_error', message: 'no', type: 'ValueError', retryable: false },
      },
    ],
  ]);
});

test('`Prefer: wait` returns 202 if the only event is `queued`', async () => {
  const answer = await gateway.open(`/v4/${PROJECT}/chat/run?events=full`, {
    body: '{}',
    headers: { accept: 'text/event-stream', prefer: 'wait=0' },
  });
  expect(answer.statusCode).toBe(202);
  await (await gateway.worker.next()).stops();
});

test('a resumed stream continues after the reader’s last item, without earlier log lines', async () => {
  const calling = call('&onDisconnect=continue');
  const run = await gateway.worker.next();
  await run.prints('before');
  await run.items(['one', 'two']);
  (await calling).destroy();
  const again = await resume(run, '&after=1');
  const reading = eventsOf(again);
  await run.prints('after');
  await run.items(['three']);
  await run.stops();
  expect((await reading).map(([id, name, data]) => [id, name, name === 'item' ? data : undefined])).toEqual([
    ['2', 'item', 'two'],
    ['2', 'log', undefined],
    ['3', 'item', 'three'],
    ['3', 'done', undefined],
  ]);
  // From the start of an ended run, a stream has all events.
  const whole = await eventsOf(await resume(run));
  expect(whole.map(([, name]) => name)).toEqual(['queued', 'started', 'log', 'log', 'item', 'item', 'item', 'done']);
});

test('an ended run returns 204 to a reader that has all items', async () => {
  const { text } = await gateway.call({ query: '?async=true', body: '{}' });
  const run = await gateway.worker.next();
  expect(run.taken.runId).toBe(JSON.parse(text).run_id);
  await run.stops();
  // A reader without events gets all events. A reader that names number 0 has all items of this run.
  expect((await eventsOf(await resume(run))).map(([, name]) => name)).toEqual(['queued', 'started', 'done']);
  expect((await resume(run, '&after=0')).statusCode).toBe(204);
});
