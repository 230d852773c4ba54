// Contract 1 to 3: calls of functions on a whole worker: answers, streams, disconnects, pace and errors.
import { mkdir, writeFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Journey, read, until } from '../testing/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await Journey.open();
});
afterEach(() => journey.closeReaders());
afterAll(() => journey.close());

test('the result of a plain function arrives', async () => {
  const { items, outcome } = await journey.run('hello', 'add', { a: 1, b: 2.5 });
  expect(items).toEqual([]);
  expect(outcome).toMatchObject({ state: 'succeeded', streamed: false, items: 0 });
  expect(outcome?.result?.toString()).toBe('{"sum":3.5}');
});

test('a generator’s items arrive in order, each once', async () => {
  const { items, outcome } = await journey.run('hello', 'count', { n: 1_000 });
  expect(items).toEqual(Array.from({ length: 1_000 }, (_, at) => `item ${at}`));
  expect(outcome).toMatchObject({ state: 'succeeded', streamed: true, items: 1_000 });
});

test('items that are not strings arrive as the JSON the function’s process wrote', async () => {
  expect((await journey.run('hello', 'rows', { n: 2 })).items).toEqual([
    '{"i":0,"pair":[1.0,null]}',
    '{"i":1,"pair":[1.0,null]}',
  ]);
});

test('items arrive when they are yielded, not at the end', async () => {
  const { reader, runId } = await journey.call('hello', 'gated', { path: journey.path('gate') });
  const arrived = Promise.withResolvers<void>();
  const all = read(reader, () => arrived.resolve());
  await arrived.promise;
  expect((await journey.gateway.lookUp('demo', runId))?.state).toBe('running');
  await writeFile(journey.path('gate'), '');
  expect(await all).toMatchObject({ items: ['before', 'after'], outcome: { state: 'succeeded' } });
});

test('twenty callers of a sleeping generator stream side by side', async () => {
  // No generator ends before all generators have begun.
  const folder = journey.path('met');
  await mkdir(folder);
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, at) => journey.run('sleepers', 'meet', { folder, name: `${at}`, n: 20 })),
  );
  for (const { items } of all) expect(items).toEqual(['waits', 'met']);
});

test('a disconnect cancels the run, and the generator’s finally block runs', async () => {
  const { reader, runId } = await journey.call('hello', 'tidy', { path: journey.path('tidied') });
  await read(reader, () => false);
  reader.close();
  expect(await journey.fileSays('tidied')).toBe('tidied');
  const record = await until(async () => {
    const found = await journey.gateway.lookUp('demo', runId);
    return found?.state === 'running' ? undefined : found;
  });
  expect(record).toMatchObject({ state: 'cancelled', items: 1, outcome: { error: { code: 'cancelled' } } });
});

test('a generator stops while its reader does not read, and continues when the reader reads again', async () => {
  const total = 6_000;
  const { reader } = await journey.call('hello', 'counted', { path: journey.path('counted'), n: total, size: 1_000 });
  const first = await read(reader, () => false);
  const produced = async (): Promise<number> => (await journey.fileSays('counted')).length;
  // A second generator yields all its items first. The first generator had the time to do the same.
  await journey.run('hello', 'counted', { path: journey.path('counted-neighbour'), n: total, size: 1_000 });
  const stopped = await produced();
  expect(stopped).toBeLessThan(total - 1_000);
  const { items, outcome } = await read(reader);
  expect(outcome).toMatchObject({ state: 'succeeded', items: total });
  expect(first.items.length + items.length).toBeLessThanOrEqual(total);
  expect(await produced()).toBe(total);
});

test('an exception becomes the run’s error with its class and text', async () => {
  const { outcome } = await journey.run('hello', 'fail', {});
  expect(outcome).toMatchObject({
    state: 'failed',
    error: { code: 'function_error', type: 'ValueError', message: 'no such thing' },
  });
});

test('wrong parameters are reported as the caller’s error', async () => {
  expect((await journey.run('hello', 'add', { a: 1 })).outcome).toMatchObject({
    state: 'failed',
    error: { code: 'invalid_input' },
  });
});

test('a process that dies ends its run as replica_crashed, and the next call works', async () => {
  expect((await journey.run('hello', 'crash', {})).outcome).toMatchObject({
    state: 'failed',
    error: { code: 'replica_crashed' },
  });
  expect((await journey.run('hello', 'add', { a: 1, b: 1 })).outcome).toMatchObject({ state: 'succeeded' });
});

test('a crashed run is retried once if its app has retry_on_crash', async () => {
  const { outcome } = await journey.run('brittle', 'once', { path: journey.path('crashed-once') });
  expect(outcome?.result?.toString()).toBe('"second"');
});

test('a run that is stored whole is limited in bytes, and its valid items stay', async () => {
  const { items, outcome } = await journey.run('limited', 'flood', {}, { promised: true, paced: false });
  expect(outcome).toMatchObject({ state: 'failed', error: { code: 'output_too_large' } });
  expect(items.length).toBeLessThanOrEqual(10);
});

test('the environment of a function contains no variable of the worker', async () => {
  const { outcome } = await journey.run('hello', 'environment', {});
  expect(outcome?.result?.toString()).toMatch(/"PATH"/);
  expect(outcome?.result?.toString()).not.toMatch(/REDIS_URL|JWT_SECRET/);
});
