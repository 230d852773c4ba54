// Contract 3: writing items, with a scripted store.
import { type AnswerHead, type ItemBatch, ServiceError } from '@inference-proxy/contracts';
import { afterEach, expect, jest, test } from '@jest/globals';
import { RunWriter, type WriterListener } from './run-writer.ts';

type Reply =
  | { state: 'ok'; position: number; cancel: boolean }
  | { state: 'behind'; last: number }
  | { state: 'lost' }
  | { state: 'full' };

const attempt = { project: 'demo', runId: 'run', token: 'w:1' };
const unavailable = (): never => {
  throw new ServiceError('unavailable', 'The run store did not answer in time.');
};

/** A store that keeps a stream like the append script. Tests queue answers that replace its own. */
class ScriptedStore {
  items: string[] = [];
  readonly appended: ItemBatch[] = [];
  /** The answers of the next appends. Undefined, or an empty queue: the store's own answer. */
  readonly script: ((kept: Reply) => Reply)[] = [];
  hold: Promise<void> = Promise.resolve();

  readonly heads: AnswerHead[] = [];
  /** The answers of the next calls of `head`; then `ok`. */
  headScript: ('ok' | 'lost' | 'full' | 'unanswered')[] = [];

  head = async (_project: string, { head }: { head: AnswerHead }): Promise<'ok' | 'lost' | 'full'> => {
    this.heads.push(head);
    await this.hold;
    const answer = this.headScript.shift() ?? 'ok';
    if (answer === 'unanswered') throw new Error('no answer');
    return answer;
  };

  append = async (_project: string, { batch }: { batch: ItemBatch }): Promise<Reply> => {
    this.appended.push(batch);
    const change = this.script.shift();
    let reply: Reply = { state: 'ok', position: 0, cancel: false };
    if (batch.first === this.items.length + 1) this.items.push(...batch.blob.toString().split('\n'));
    else if (batch.first + batch.count - 1 > this.items.length) reply = { state: 'behind', last: this.items.length };
    await this.hold;
    return change ? change(reply) : reply;
  };
}

function listener() {
  const events: string[] = [];
  const stored: number[] = [];
  const recording: WriterListener = {
    full: () => events.push('full'),
    drained: () => events.push('drained'),
    stored: (upTo) => stored.push(upTo),
    readTo: (upTo) => upTo > 0 && events.push(`taken ${upTo}`),
    cancelled: () => events.push('cancelled'),
    lost: () => events.push('lost'),
    refused: () => events.push('refused'),
    gap: (last) => events.push(`gap after ${last}`),
  };
  return { events, stored, listener: recording };
}

function writerOn(store: ScriptedStore) {
  const { events, stored, listener: recorder } = listener();
  return { events, stored, writer: new RunWriter(store, attempt, recorder) };
}

afterEach(() => {
  jest.useRealTimers();
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const push = (writer: RunWriter, ...items: string[]): void => {
  for (const item of items) writer.push('s', 1, Buffer.from(item));
};

test('the items of a tick are written in a single append, numbered from 1', async () => {
  const store = new ScriptedStore();
  const { writer } = writerOn(store);
  push(writer, 'a', 'b', 'c');
  await writer.finish();
  expect(store.appended.map(({ first, count, kind, blob }) => [first, count, kind, blob.toString()])).toEqual([
    [1, 3, 's', 'a\nb\nc'],
  ]);
  expect(writer.written).toBe(3);
});

test('stored items are reported every 256 KiB or 1,024 items', async () => {
  const store = new ScriptedStore();
  const { stored, writer } = writerOn(store);
  for (let n = 0; n < 6; n++) {
    push(writer, 'x'.repeat(64 * 1024));
    await writer.finish();
  }
  expect(stored).toEqual([4]);
  for (let n = 0; n < 1_100; n++) {
    push(writer, '');
    await writer.finish();
  }
  expect(stored).toEqual([4, 1_028]);
});

test('different kinds are never joined, and a text with newlines is never joined', async () => {
  const store = new ScriptedStore();
  const { writer } = writerOn(store);
  writer.push('s', 2, Buffer.from('a\nb'));
  writer.push('s', 1, Buffer.from(''));
  writer.push('j', 1, Buffer.from('1'));
  writer.push('m', 1, Buffer.from('x\ny'));
  writer.push('m', 1, Buffer.from('z\n'));
  await turn();
  await turn();
  await turn();
  expect(store.appended.map(({ first, count, kind, blob }) => [first, count, kind, blob.toString()])).toEqual([
    [1, 3, 's', 'a\nb\n'],
    [4, 1, 'j', '1'],
    [5, 1, 'm', 'x\ny'],
    // The scripted store counts lines, so this test looks at the sent batches instead.
    [6, 1, 'm', 'z\n'],
  ]);
  writer.stop();
});

test('items that come during two open appends are joined into the next append', async () => {
  const store = new ScriptedStore();
  let answer = (): void => undefined;
  store.hold = new Promise((resolve) => {
    answer = resolve;
  });
  const { writer } = writerOn(store);
  for (const item of ['a', 'b', 'c', 'd', 'e']) {
    push(writer, item);
    await turn();
  }
  expect(store.appended).toHaveLength(2);
  answer();
  await writer.finish();
  expect(store.appended.map(({ blob }) => blob.toString())).toEqual(['a', 'b', 'c\nd\ne']);
});

test('an append is bounded in bytes, and a larger item is written alone', async () => {
  const store = new ScriptedStore();
  const { writer } = writerOn(store);
  push(writer, 'x'.repeat(100_000), 'y'.repeat(100_000), 'z'.repeat(300_000));
  await writer.finish();
  expect(store.appended.map(({ blob }) => blob.length)).toEqual([100_000, 100_000, 300_000]);
});

test('an append whose reply was lost is sent again unchanged, and no item is stored twice', async () => {
  const store = new ScriptedStore();
  store.script.push(unavailable);
  const { writer } = writerOn(store);
  push(writer, 'a', 'b');
  await turn();
  push(writer, 'c');
  await writer.finish();
  expect(store.items).toEqual(['a', 'b', 'c']);
});

test('a store that missed a batch gets the batch again, in order', async () => {
  const store = new ScriptedStore();
  const { writer } = writerOn(store);
  store.script.push(() => {
    store.items = [];
    return unavailable();
  });
  push(writer, 'a');
  await turn();
  push(writer, 'b');
  await writer.finish();
  expect(store.items).toEqual(['a', 'b']);
});

test('two appends refused as behind are both resent from the store’s last number', async () => {
  const store = new ScriptedStore();
  store.script.push(
    () => ({ state: 'behind', last: 0 }),
    () => ({ state: 'behind', last: 0 }),
  );
  const { writer } = writerOn(store);
  push(writer, 'a');
  await turn();
  push(writer, 'b');
  await turn();
  store.items = [];
  await writer.finish();
  expect(store.items).toEqual(['a', 'b']);
});

test('a store that lost acknowledged items is reported as a gap, and the writer stops', async () => {
  const store = new ScriptedStore();
  const { events, writer } = writerOn(store);
  push(writer, 'a', 'b');
  await writer.finish();
  store.items = ['a'];
  push(writer, 'c');
  await writer.finish();
  push(writer, 'd');
  await turn();
  expect(events).toEqual(['gap after 1']);
  expect(store.appended).toHaveLength(2);
});

test('a lost attempt writes no more items', async () => {
  const store = new ScriptedStore();
  store.script.push(() => ({ state: 'lost' }));
  const { events, writer } = writerOn(store);
  push(writer, 'a');
  await writer.finish();
  push(writer, 'b');
  await turn();
  expect(events).toEqual(['lost']);
  expect(store.appended).toHaveLength(1);
});

test('credits and the cancel flag of an append are passed on', async () => {
  const store = new ScriptedStore();
  store.script.push(() => ({ state: 'ok', position: 7, cancel: true }));
  const { events, writer } = writerOn(store);
  push(writer, 'a');
  await writer.finish();
  expect(events).toEqual(['taken 7', 'cancelled']);
});

test('while the store is away the function is paused, and resumed when the store is back', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'queueMicrotask', 'nextTick'] });
  const store = new ScriptedStore();
  let isAway = true;
  for (let times = 0; times < 6; times++) store.script.push((kept) => (isAway ? unavailable() : kept));
  const { events, writer } = writerOn(store);
  for (let times = 0; times < 12; times++) push(writer, 'x'.repeat(100_000));
  await turn();
  expect(events).toEqual(['full']);
  const before = store.appended.length;
  await jest.advanceTimersByTimeAsync(60);
  expect(store.appended.length).toBeGreaterThan(before);
  isAway = false;
  const finished = writer.finish();
  await jest.advanceTimersByTimeAsync(10_000);
  await finished;
  expect(events).toEqual(['full', 'drained']);
  expect(store.items).toHaveLength(12);
});

test('a stopped writer resolves `finish` and leaves no timer', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'queueMicrotask', 'nextTick'] });
  const store = new ScriptedStore();
  store.script.push(unavailable);
  const { writer } = writerOn(store);
  push(writer, 'a');
  await turn();
  const finished = writer.finish();
  writer.stop();
  await finished;
  expect(jest.getTimerCount()).toBe(0);
});

const HEAD: AnswerHead = { status: 200, headers: [], form: 'sse' };

test('the head is written before the items, and the writer finishes after the head', async () => {
  const store = new ScriptedStore();
  const { writer } = writerOn(store);
  let release = (): void => {};
  store.hold = new Promise((resolve) => {
    release = resolve;
  });
  writer.head(HEAD);
  push(writer, 'a');
  const finished = writer.finish();
  await turn();
  expect(store.heads).toEqual([HEAD]);
  expect(store.appended).toEqual([]);
  release();
  await finished;
  expect(store.items).toEqual(['a']);
});

test('`finish` waits for a head without items', async () => {
  const store = new ScriptedStore();
  const { writer } = writerOn(store);
  writer.head(HEAD);
  await writer.finish();
  expect(store.heads).toEqual([HEAD]);
});

test('a head without an answer is written again', async () => {
  const store = new ScriptedStore();
  store.headScript = ['unanswered', 'unanswered'];
  const { writer, events } = writerOn(store);
  writer.head(HEAD);
  push(writer, 'a');
  await writer.finish();
  expect(store.heads).toHaveLength(3);
  expect(store.items).toEqual(['a']);
  expect(events).toEqual([]);
});

test('an attempt that is lost at its head writes no items', async () => {
  const store = new ScriptedStore();
  store.headScript = ['lost'];
  const { writer, events } = writerOn(store);
  writer.head(HEAD);
  push(writer, 'a');
  await writer.finish();
  expect(store.appended).toEqual([]);
  expect(events).toEqual(['lost']);
});

test('items that exceed the project’s share stop the writer, and earlier items count', async () => {
  const store = new ScriptedStore();
  const { events, writer } = writerOn(store);
  push(writer, 'a', 'b');
  await writer.finish();
  store.script.push(() => ({ state: 'full' }));
  push(writer, 'c');
  await writer.finish();
  push(writer, 'd');
  await turn();
  expect(events).toEqual(['refused']);
  expect(writer.written).toBe(2);
  expect(store.appended).toHaveLength(2);
});

test('a head that exceeds the project’s share stops the writer', async () => {
  const store = new ScriptedStore();
  store.headScript = ['full'];
  const { events, writer } = writerOn(store);
  writer.head({ status: 200, headers: [], form: 'chunks' });
  push(writer, 'a');
  await writer.finish();
  expect(events).toEqual(['refused']);
  expect(store.appended).toEqual([]);
});
