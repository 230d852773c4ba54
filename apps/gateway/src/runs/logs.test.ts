import type { IncomingMessage } from 'node:http';
import { errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
});
afterAll(() => gateway.stop());

const AT = Date.parse('2026-11-21T04:00:00.123Z');

async function started(): Promise<PlayedRun> {
  const answering = gateway.call({ query: '?async=true' });
  const run = await gateway.worker.next();
  await answering;
  return run;
}

function prints(run: PlayedRun, ...texts: string[]): Promise<unknown> {
  const { project, runId, token } = run.taken;
  const lines = texts.map((text) => ({ at: AT, stream: text.startsWith('!') ? 'stderr' : 'stdout', text }) as const);
  return gateway.worker.store.log(project, { runId, token, lines });
}

const path = (run: PlayedRun, query = ''): string => `/v4/${PROJECT}/runs/${run.taken.runId}/logs${query}`;
const read = async (run: PlayedRun, query = '') => JSON.parse((await gateway.get(path(run, query))).text);
const follow = (run: PlayedRun, headers: Record<string, string> = {}, query = ''): Promise<IncomingMessage> =>
  gateway.open(path(run, `?follow=true${query}`), { method: 'GET', headers });

/** Returns the events of an answer as they arrive. */
async function* events(answer: IncomingMessage): AsyncGenerator<EventSourceMessage> {
  const parsed: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void parsed.push(event) });
  for await (const piece of answer.setEncoding('utf8')) {
    parser.feed(String(piece));
    yield* parsed.splice(0);
  }
}

async function all(answer: IncomingMessage): Promise<EventSourceMessage[]> {
  const found: EventSourceMessage[] = [];
  for await (const event of events(answer)) found.push(event);
  return found;
}

const line = (seq: number, text: string) => ({
  id: String(seq),
  event: 'log',
  data: JSON.stringify({ stream: text.startsWith('!') ? 'stderr' : 'stdout', time: '2026-11-21T04:00:00.123Z', text }),
});

test('lines are returned in order with number, stream and time, during the run and after it', async () => {
  const run = await started();
  expect(await read(run)).toEqual({ run_id: run.taken.runId, ended: false, cut: 0, logs: [] });
  await prints(run, 'one', '!two', 'naïve\u2028 "three"');
  const logs = [
    { seq: 1, stream: 'stdout', time: '2026-11-21T04:00:00.123Z', text: 'one' },
    { seq: 2, stream: 'stderr', time: '2026-11-21T04:00:00.123Z', text: '!two' },
    { seq: 3, stream: 'stdout', time: '2026-11-21T04:00:00.123Z', text: 'naïve\u2028 "three"' },
  ];
  expect(await read(run)).toEqual({ run_id: run.taken.runId, ended: false, cut: 0, logs });
  expect((await read(run, '?after=2')).logs).toEqual(logs.slice(2));
  await run.returns('1');
  expect(await read(run)).toEqual({ run_id: run.taken.runId, ended: true, cut: 0, logs });
});

test('followed lines arrive when they are printed, and the stream ends with the run', async () => {
  const run = await started();
  await prints(run, 'one');
  const answer = await follow(run);
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  const coming = events(answer);
  expect((await coming.next()).value).toEqual(line(1, 'one'));
  await prints(run, '!two', 'three');
  expect((await coming.next()).value).toEqual(line(2, '!two'));
  expect((await coming.next()).value).toEqual(line(3, 'three'));
  await prints(run, 'four');
  await run.items(['an item, which is no line']);
  await run.stops();
  expect((await coming.next()).value).toEqual(line(4, 'four'));
  expect((await coming.next()).done).toBe(true);
});

test('a resumed log continues after the reader’s last line, and returns 204 after the end', async () => {
  const run = await started();
  await prints(run, 'one', 'two', 'three');
  const live = all(await follow(run, { 'last-event-id': '1' }));
  await run.returns('1');
  expect(await live).toEqual([line(2, 'two'), line(3, 'three')]);
  expect(await all(await follow(run))).toEqual([line(1, 'one'), line(2, 'two'), line(3, 'three')]);
  expect(await all(await follow(run, {}, '&after=2'))).toEqual([line(3, 'three')]);
  for (const after of ['3', '4']) expect((await follow(run, { 'last-event-id': after })).statusCode).toBe(204);
});

test('a run that printed nothing has an empty log, and its followed log ends with the run', async () => {
  const run = await started();
  const live = all(await follow(run));
  await run.returns('1');
  expect(await live).toEqual([]);
  expect(await read(run)).toMatchObject({ ended: true, logs: [] });
  expect((await follow(run)).statusCode).toBe(204);
});

test('lines that are no longer kept are reported as a cut', async () => {
  const run = await started();
  const texts = Array.from({ length: 400 }, (_, n) => `${n} `.padEnd(1000, 'x'));
  for (let n = 0; n < texts.length; n += 50) await prints(run, ...texts.slice(n, n + 50));
  await run.returns('1');
  const { cut, logs } = await read(run);
  expect(cut).toBeGreaterThan(0);
  expect(logs[0].seq).toBe(cut + 1);
  expect(logs.at(-1)).toMatchObject({ seq: 400, text: texts[399] });
  const [first, ...rest] = await all(await follow(run));
  expect(first).toEqual({ event: 'cut', data: JSON.stringify({ lines: cut }) });
  expect(rest.map(({ id }) => Number(id))).toEqual(logs.map(({ seq }: { seq: number }) => seq));
});

test('a stalled reader of logs does not delay its run, and gets every line when it reads again', async () => {
  const run = await started();
  const answer = await follow(run);
  answer.pause();
  const texts = Array.from({ length: 100 }, (_, n) => `${n} `.padEnd(2000, 'x'));
  for (let n = 0; n < texts.length; n += 10) await prints(run, ...texts.slice(n, n + 10));
  await run.returns('1');
  const found = await all(answer);
  expect(found.map(({ id }) => Number(id))).toEqual(texts.map((_, n) => n + 1));
});

test('an unknown run returns 404, and a wrong value of `follow` returns 400', async () => {
  for (const id of ['0199c0de-0000-7000-8000-000000000000', 'x']) {
    const answer = await gateway.get(`/v4/${PROJECT}/runs/${id}/logs`);
    expect([answer.status, errorOf(answer).code]).toEqual([404, 'not_found']);
    expect((await gateway.get(`/v4/${PROJECT}/runs/${id}/logs?follow=true`)).status).toBe(404);
  }
  const run = await started();
  for (const query of ['?follow=yes', '?follow', '?follow=true&follow=true', '?after=x', '?after=-1'])
    expect((await gateway.get(path(run, query))).status).toBe(400);
  await run.returns('1');
});
