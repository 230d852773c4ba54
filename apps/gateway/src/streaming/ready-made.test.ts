// Contract 3, "Ready-made events", over HTTP.
import { textOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import { app } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  await gateway.worker.start(app(), app({ app: 'wrapped', preformatted: false }));
});
afterAll(() => gateway.stop());

/** Returns events as an independent parser reads them. */
function parsed(text: string): EventSourceMessage[] {
  const events: EventSourceMessage[] = [];
  createParser({ onEvent: (event) => events.push(event) }).feed(text);
  return events;
}

/** Calls a function that yields these texts and ends. Returns the stream and the run's id. */
async function yielded(query: string, items: readonly string[], name = 'chat'): Promise<[string, string]> {
  const calling = gateway.open(`/v4/${PROJECT}/${name}/run${query}`, {
    body: '{}',
    headers: { accept: 'text/event-stream' },
  });
  const run = await gateway.worker.next(name);
  for (const item of items) await run.items([item], item.includes('\n') ? 'm' : 's');
  await run.stops();
  return [await textOf(await calling), run.taken.runId];
}

const resumed = async (runId: string, query: string): Promise<string> =>
  (await gateway.get(`/v4/${PROJECT}/runs/${runId}/stream${query}`)).text;

const FORGED = [
  'event: done\ndata: {"status":"succeeded"}\n\n',
  'data: {}\nevent: error\n\n',
  'event:error\r\rdata: x\r\r',
  'event: error\rdata: {"error":{}}\r\r',
  'event: delta\ndata: a\n\nevent: done\ndata: b\n\n',
];

test('with events=full, ready-made text cannot forge `done` or `error`, on the call and on a resume', async () => {
  const [text, runId] = await yielded('?events=full', FORGED);
  for (const stream of [text, await resumed(runId, '?events=full')]) {
    const events = parsed(stream);
    expect(events.map(({ event }) => event)).toEqual([
      'queued',
      'started',
      ...Array.from({ length: 6 }, () => 'item'),
      'done',
    ]);
    expect(events.slice(2, -1).map(({ id, data }) => [id, data])).toEqual([
      ['1', '{"status":"succeeded"}'],
      ['2', '{}'],
      ['3', 'event:error\n\ndata: x\n\n'],
      ['4', '{"error":{}}'],
      [undefined, 'a'],
      ['5', 'b'],
    ]);
    expect(JSON.parse(events.at(-1)?.data ?? '')).toMatchObject({ run_id: runId, status: 'succeeded' });
  }
});

test('ready-made text is sent unchanged in a plain stream', async () => {
  const [text] = await yielded('', FORGED.slice(0, 2));
  expect(text).toBe(FORGED.slice(0, 2).join(''));
});

test('with ids, the last event of a ready-made item carries its number, and ids in the text are dropped', async () => {
  const [text, runId] = await yielded('?ids=true', ['id: 9\ndata: a\n\nevent: b\ndata: b\nid: 8\n\n', 'data: c\n\n']);
  const numbered = [
    { id: undefined, event: undefined, data: 'a' },
    { id: '1', event: 'b', data: 'b' },
    { id: '2', event: undefined, data: 'c' },
  ];
  for (const stream of [text, await resumed(runId, '')]) expect(parsed(stream)).toEqual(numbered);
});

test('a text with an event without data is an ordinary item', async () => {
  const items = [
    ':\n\n',
    ': a\n\n: b\n\n',
    'retry: 10\n\n',
    'id: 7\n\n',
    'id: 7\nretry: 1\n\n',
    'data: x\n\nevent: y\n\n',
  ];
  const [text, runId] = await yielded('', items);
  expect(parsed(text).map(({ data }) => data)).toEqual(items);
  for (const query of ['', '?events=full']) {
    const events = parsed(await resumed(runId, query)).filter(({ event }) => event === undefined || event === 'item');
    expect(events.map(({ id, data }) => [id, data])).toEqual(items.map((item, at) => [String(at + 1), item]));
  }
});

test('an app with `preformatted = false` has no ready-made events in any form', async () => {
  const item = 'event: done\nid: 9\ndata: x\n\n';
  for (const query of ['', '?ids=true', '?events=full']) {
    const [text, runId] = await yielded(query, [item], 'wrapped');
    const resumedText = await resumed(runId, query === '?events=full' ? query : '');
    for (const stream of [text, resumedText]) {
      const [event] = parsed(stream).filter(({ event }) => !['queued', 'started'].includes(event ?? ''));
      expect(event).toMatchObject({ data: item, event: query === '?events=full' ? 'item' : undefined });
    }
  }
});

test('a run keeps the `preformatted` of its call, for readers after the app has changed', async () => {
  const item = 'event: done\ndata: x\n\n';
  const headers = { accept: 'text/event-stream', 'idempotency-key': 'before the change' };
  const call = () => gateway.open(`/v4/${PROJECT}/changing/run`, { body: '{}', headers });
  await gateway.worker.start(app({ app: 'changing', preformatted: false }));
  const calling = call();
  const run = await gateway.worker.next('changing');
  await run.items([item], 'm');
  await run.stops();
  const first = await textOf(await calling);
  expect(parsed(first)).toMatchObject([{ data: item }]);
  await gateway.worker.store.announce(PROJECT, app({ app: 'changing', version: 'changed' }));
  while (!(await gateway.get(`/v4/${PROJECT}`)).text.includes('"changed"'));
  expect(parsed(await resumed(run.taken.runId, ''))).toMatchObject([{ id: '1', data: item }]);
  expect(await textOf(await call())).toBe(first);
});

test('a ready-made item of the result is the text that the function yielded', async () => {
  const item = 'event: done\nid: 9\ndata: x\n\n';
  const calling = gateway.call();
  const run = await gateway.worker.next();
  await run.items([item], 'm');
  await run.stops();
  expect(JSON.parse((await calling).text).result).toEqual([item]);
});
