// Contract 5 and 6: a whole worker while its store pauses or loses its data, and while the worker stops.
import { writeFile } from 'node:fs/promises';
import type { Shutdown } from '@inference-proxy/platform';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Journey, read, until } from '../testing/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await Journey.open();
});
afterEach(() => journey.closeReaders());
afterAll(() => journey.close());

test('a pause of the store loses no item and no run', async () => {
  const { reader } = await journey.call('hello', 'slow', { n: 30, pause: 0.1 });
  let paused = false;
  const { items, outcome } = await read(reader, () => {
    if (paused) return;
    paused = true;
    journey.redis.pause();
    setTimeout(() => journey.redis.resume(), 3_000);
  });
  expect(items).toEqual(Array.from({ length: 30 }, (_, at) => `${at}`));
  expect(outcome).toMatchObject({ state: 'succeeded', items: 30 });
});

test('after the store comes back empty, the apps are announced again, and a forgotten run is stopped', async () => {
  const { reader } = await journey.call('hello', 'tidy', { path: journey.path('tidied-when-lost') });
  await read(reader, () => false);
  await journey.redis.restart({ kill: true });
  expect(await journey.fileSays('tidied-when-lost')).toBe('tidied');
  await journey.app('hello', 'ready');
  const { outcome } = await until(() => journey.run('hello', 'add', { a: 3, b: 4 }).catch(() => undefined));
  expect(outcome?.result?.toString()).toBe('{"sum":7}');
});

test('after the store is emptied without a broken connection, the apps are announced again, and calls are answered', async () => {
  await journey.clients[0]?.flushall();
  const { outcome } = await until(async () => {
    const apps = await journey.gateway.registry.apps('demo');
    return apps.has('hello') ? journey.run('hello', 'add', { a: 1, b: 1 }) : undefined;
  });
  expect(outcome?.result?.toString()).toBe('{"sum":2}');
});

test('a stopping worker waits for its runs and interrupts the runs that do not end', async () => {
  const [first] = journey.workers as [Shutdown];
  const short = await journey.call('hello', 'wait', { path: journey.path('waiting') });
  const long = await journey.call('hello', 'tidy', { path: journey.path('tidied-at-stop') });
  await until(async () => (await journey.gateway.lookUp('demo', short.runId))?.state === 'running' || undefined);
  await read(long.reader, () => false);
  const ends = Promise.all([read(short.reader), read(long.reader)]);
  const stopping = first.stop('test');
  await writeFile(journey.path('waiting'), '');
  expect(await stopping).toBe(true);
  const [ended, interrupted] = await ends;
  expect(ended.outcome?.result?.toString()).toBe('"waited"');
  expect(interrupted.outcome).toMatchObject({ state: 'failed', error: { code: 'unavailable' } });
  expect(await journey.fileSays('tidied-at-stop')).toBe('tidied');
});

test('runs that wait without a worker are taken by the next worker', async () => {
  const { reader } = await journey.call('hello', 'add', { a: 2, b: 2 });
  await journey.worker();
  expect((await read(reader)).outcome?.result?.toString()).toBe('{"sum":4}');
});
