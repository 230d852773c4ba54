// Contract 3: the stream, from a Python generator to a socket.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createParser } from 'eventsource-parser';
import { Caller } from '../client/caller.ts';
import { textOf } from '../client/http.ts';
import { OWN_STREAM, opening, openingEvent, VARYING } from '../client/streams.ts';
import { fileSays, settledSize } from '../client/until.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
/** A call without an item. It begins before the tests, because STREAM_COMMIT_MS is 10 s and the tests need not wait one after the other. */
let silent: { answering: ReturnType<Caller['stream']>; openGate(k: number): Promise<void> };
beforeAll(async () => {
  stack = await joinSharedStack('streams', ['streams', 'hasty', 'printing']);
  ({ caller } = stack);
  const { folder, openGate } = await gates();
  silent = { answering: caller.stream('streams/gated', { folder, n: 1 }), openGate };
  silent.answering.catch(() => {});
});
afterAll(() => stack.leave());

let folders = 0;
/** Makes a new folder of gates. */
async function gates(): Promise<{ folder: string; openGate(k: number): Promise<void> }> {
  const folder = join(stack.marksDir, `gates-${++folders}`);
  await mkdir(folder);
  return { folder, openGate: (k) => writeFile(join(folder, String(k)), '') };
}

/** Returns the events of a call that is answered with a stream. */
async function eventsOf(fn: string, params: object | string = {}): Promise<string[]> {
  const { answer, events } = await caller.stream(`streams/${fn}`, params);
  expect(answer.statusCode).toBe(200);
  return events.rest();
}

describe('an item is sent as one event when the function yields the item', () => {
  test.each([
    ['a generator', 'gated', {}],
    ['an async generator', 'gated_async', {}],
    ['a generator, compressed', 'gated', { 'accept-encoding': 'gzip' }],
  ])('%s', async (_, fn, headers) => {
    const { folder, openGate } = await gates();
    await openGate(0);
    const { answer, events } = await caller.stream(`streams/${fn}`, { folder, n: 4 }, { headers });
    expect(answer.headers['content-encoding']).toBe('accept-encoding' in headers ? 'gzip' : undefined);
    // Item k is read before the generator may yield item k + 1, so item k cannot have waited for item k + 1.
    for (let k = 0; k < 4; k++) {
      expect(await events.next()).toBe(`data: item ${k}`);
      await openGate(k + 1);
    }
    expect(await events.next()).toBeUndefined();
  });

  test.each([
    ['an iterator', 'iterator', { n: 2 }, ['data: 1', 'data: 0']],
    ['a decorated generator', 'decorated', { n: 2 }, ['data: 0', 'data: 1']],
    ['a generator without items', 'decorated', { n: 0 }, []],
  ])('%s', async (_, fn, params, expected) => {
    expect(await eventsOf(fn, params)).toEqual(expected);
  });

  test('five thousand items, in order, each once', async () => {
    expect(await eventsOf('decorated', { n: 5000 })).toEqual(Array.from({ length: 5000 }, (_, k) => `data: ${k}`));
  });

  test('a plain value gives one event with that value', async () => {
    expect(await eventsOf('value', { value: { a: [1, null] } })).toEqual(['data: {"a":[1,null]}']);
    expect(await eventsOf('value', { value: 'a text' })).toEqual(['data: a text']);
    expect(await eventsOf('coroutine', { value: 1 })).toEqual(['data: 1']);
    expect(await eventsOf('value', { value: null })).toEqual(['data: null']);
  });
});

test('a stream has exactly the headers of the contract', async () => {
  const { answer, events } = await caller.stream('streams/decorated', { n: 1 });
  await events.rest();
  const { date, 'x-envoy-upstream-service-time': ms, 'x-request-id': id, connection } = answer.headers;
  expect(Object.keys(answer.headers).sort()).toEqual([...Object.keys(OWN_STREAM), ...VARYING].sort());
  expect(answer.headers).toMatchObject(OWN_STREAM);
  expect(Number.isNaN(Date.parse(String(date)))).toBe(false);
  expect(String(ms)).toMatch(/^\d+$/);
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  expect(['close', 'keep-alive']).toContain(connection);
});

describe('a string is sent with one data line for each of its lines; other values are compact JSON', () => {
  const HARD: [string, string[]][] = [
    ['', ['data: ']],
    ['two\nlines', ['data: two\ndata: lines']],
    ['CR LF\r\nand CR\ralone', ['data: CR LF\ndata: and CR\ndata: alone']],
    ['ends with\n', ['data: ends with\ndata: ']],
    ['\n', ['data: \ndata: ']],
    [' leading space', ['data:  leading space']],
    ['naïve 東京 🚀 \u2028', ['data: naïve 東京 🚀 \u2028']],
    ['\ufeff', ['data: \ufeff']],
    ['\ufeffdata: x\n\n', ['data: \ufeffdata: x\ndata: \ndata: ']],
    ['a\0b', ['data: a\0b']],
    ['data: not an event', ['data: data: not an event']],
    [':\n\n', ['data: :\ndata: \ndata: ']],
  ];
  test.each(HARD)('%j', async (item, expected) => {
    expect(await eventsOf('items', { items: [item] })).toEqual(expected);
    expect(await eventsOf('value', { value: item })).toEqual(expected);
  });

  test('the strings of one stream keep their order', async () => {
    const items = HARD.map(([item]) => item);
    expect(await eventsOf('items', { items })).toEqual(HARD.flatMap(([, expected]) => expected));
  });

  test('large integers, 1.0 and keys of any name are not changed', async () => {
    const items = '[12345678901234567890123,1.0,{"__proto__":{"constructor":1}},[],true]';
    expect(await eventsOf('items', `{"items":${items}}`)).toEqual([
      'data: 12345678901234567890123',
      'data: 1.0',
      'data: {"__proto__":{"constructor":1}}',
      'data: []',
      'data: true',
    ]);
  });

  test('an independent parser of event streams reads the yielded strings', async () => {
    const items = ['a', 'two\nlines', '', 'naïve 東京 🚀', ' x'];
    const read: string[] = [];
    const parser = createParser({ onEvent: ({ data }) => read.push(data) });
    const { answer } = await caller.stream('streams/items', { items });
    parser.feed(await textOf(answer));
    expect(read).toEqual(items);
  });
});

test('a ready-made item is sent unchanged', async () => {
  const ready = 'event: delta\ndata: {"a": 1}\n\n: comment\ndata: 2\n\n';
  expect(await eventsOf('items', { items: [ready, 'plain'] })).toEqual([
    'event: delta\ndata: {"a": 1}',
    ': comment\ndata: 2',
    'data: plain',
  ]);
  const answer = await caller.call('streams/items', { items: [ready] });
  expect(JSON.parse(answer.text).result).toEqual([ready]);
});

const OPENING = openingEvent(0);

describe('ids=true numbers every event', () => {
  const numbered = async (fn: string, params: object, runId?: { id: string }): Promise<string[]> => {
    const stream = await caller.stream(`streams/${fn}`, params, { query: '?ids=true' });
    if (runId) runId.id = stream.runId;
    return stream.events.rest();
  };

  test('of a stream', async () => {
    const items = ['a', 'two\nlines', { n: 1 }, '', 'CR\ralone'];
    expect(await numbered('items', { items })).toEqual([
      OPENING,
      'id: 1\ndata: a',
      'id: 2\ndata: two\ndata: lines',
      'id: 3\ndata: {"n":1}',
      'id: 4\ndata: ',
      'id: 5\ndata: CR\ndata: alone',
    ]);
  });

  test('of a stream of ready-made items on their last event, and drops the items’ ids', async () => {
    const items = ['id: x\ndata: 1\n\nevent: e\ndata: 2\nid: y\n\n', 'plain'];
    expect(await numbered('items', { items })).toEqual([
      OPENING,
      'data: 1',
      'id: 1\nevent: e\ndata: 2',
      'id: 2\ndata: plain',
    ]);
  });

  test('of an answer with a plain value, and of a failure', async () => {
    expect(await numbered('value', { value: [1] })).toEqual([OPENING, 'id: 1\ndata: [1]']);
    const run = { id: '' };
    const events = await numbered('raises_late', { n: 2 }, run);
    expect(events.slice(0, 3)).toEqual([OPENING, 'id: 1\ndata: 0', 'id: 2\ndata: 1']);
    expect(events[3]).toMatch(/^id: 3\nevent: error\ndata: .*"function_error"/);
    const again = await caller.request(`${caller.path}/runs/${run.id}/stream?after=2`, { method: 'GET' });
    expect(again.text).toBe(`${opening(2)}${events[3]}\n\n`);
  });
});

test('a stream with events=full has the states, the items and the log lines of the run', async () => {
  const { folder, openGate } = await gates();
  const { answer, events, runId } = await caller.stream('printing/gated', { folder, n: 3 }, { query: '?events=full' });
  expect(answer.statusCode).toBe(200);
  expect(await events.next()).toBe(OPENING);
  expect(await events.next()).toBe(`id: 0\nevent: queued\ndata: {"run_id":"${runId}"}`);
  expect(await events.next()).toMatch(/^id: 0\nevent: started\ndata: {"run_id":".*","started_at":"[^"]+Z"}$/);
  const items: string[] = [];
  const lines: string[] = [];
  for (let k = 0; k < 3; k++) {
    await openGate(k);
    // The order of a log line and its item is not defined, because they reach the gateway separately.
    for (let n = 0; n < 2; n++) {
      const [id = '', name, data = ''] = ((await events.next()) ?? '').split('\n');
      if (name === 'event: item') items.push(`${id} ${data}`);
      else lines.push((JSON.parse(data.slice('data: '.length)) as { text: string }).text);
    }
  }
  expect(items).toEqual(['id: 1 data: 0', 'id: 2 data: 1', 'id: 3 data: 2']);
  expect(lines).toEqual(['line 0', 'line 1', 'line 2']);
  const [last = '', ...more] = await events.rest();
  expect(more).toEqual([]);
  const [head, data] = last.split('\ndata: ');
  expect(head).toBe('id: 3\nevent: done');
  expect(JSON.parse(data ?? '')).toEqual({
    run_id: runId,
    status: 'succeeded',
    run_time_ms: expect.any(Number),
    timestamp: expect.stringMatching(/Z$/),
  });
});

describe('a failure', () => {
  test('before the first item has its HTTP status and a JSON body', async () => {
    const { answer } = await caller.stream('streams/raises', { text: 'early' });
    expect(answer.statusCode).toBe(500);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(await textOf(answer))).toMatchObject({
      status: 'failed',
      error: { code: 'function_error', type: 'LookupError', message: 'early' },
    });
  });

  test('after the first byte is the last event of the stream', async () => {
    const { answer, events, runId } = await caller.stream('streams/raises_late', { n: 2 });
    expect(answer.statusCode).toBe(200);
    expect(await events.next()).toBe('data: 0');
    expect(await events.next()).toBe('data: 1');
    const [last, ...more] = await events.rest();
    expect(more).toEqual([]);
    const [name, data] = (last ?? '').split('\ndata: ');
    expect(name).toBe('event: error');
    expect(JSON.parse(data ?? '')).toEqual({
      run_id: runId,
      error: { code: 'function_error', type: 'LookupError', message: 'late', retryable: false },
    });
  });

  test('a stream that goes over its time limit ends with timed_out', async () => {
    const { events } = await caller.stream('hasty/sleeps_late');
    expect(await events.next()).toBe('data: one');
    expect((await events.rest()).join()).toMatch(/^event: error\ndata: .*"code":"timed_out"/);
  });

  test('a stream sends its status line after STREAM_COMMIT_MS at the latest', async () => {
    // The answer has begun although the gate is closed and no item has come.
    const { answer, events } = await silent.answering;
    expect(answer.statusCode).toBe(200);
    await silent.openGate(0);
    expect(await events.rest()).toEqual(['data: item 0']);
  });
});

test('twenty callers of a sleeping generator stream side by side', async () => {
  const { folder, openGate } = await gates();
  await openGate(0);
  const all = await Promise.all(Array.from({ length: 20 }, () => caller.stream('streams/gated', { folder, n: 2 })));
  // Each caller has its first item before the second gate opens.
  for (const { events } of all) expect(await events.next()).toBe('data: item 0');
  await openGate(1);
  for (const { events } of all) expect(await events.rest()).toEqual(['data: item 1']);
});

test('a disconnect cancels the run, and the generator’s finally runs', async () => {
  const mark = join(stack.marksDir, 'tidy');
  const { events, runId } = await caller.stream('streams/tidy', { mark });
  expect(await events.next()).toBe('data: begun');
  events.leave();
  expect(await fileSays(mark)).toBe('tidied');
  expect(await caller.ended(runId)).toMatchObject({ status: 'cancelled', items: 1, error: { code: 'cancelled' } });
});

test('a disconnect before the first item cancels the run', async () => {
  const started = join(stack.marksDir, 'started');
  const leaving = new AbortController();
  const answered = caller.call('streams/waits', { gate: '/never', started }, { signal: leaving.signal });
  const runId = await fileSays(started);
  leaving.abort();
  await expect(answered).rejects.toThrow();
  expect(await caller.ended(runId)).toMatchObject({ status: 'cancelled' });
});

test('a stalled reader holds back the generator and gets every item in the end', async () => {
  const [mark, n, size] = [join(stack.marksDir, 'counted'), 4000, 10_000];
  const { events } = await caller.stream('streams/counted', { mark, n, size });
  expect(await events.next()).toBe(`data: ${'0 '.padEnd(size, 'x')}`);
  expect(await settledSize(mark)).toBeLessThan(n);
  let read = 1;
  for (let event = await events.next(); event !== undefined; event = await events.next()) {
    if (!event.startsWith(`data: ${read} `) || event.length !== size + 6) throw new Error(`item ${read} is ${event}`);
    read += 1;
  }
  expect(read).toBe(n);
});
