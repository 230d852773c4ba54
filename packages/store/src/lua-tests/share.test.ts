// Contract 9: every script that writes enforces the project's share of the run store.
import { expect, test } from '@jest/globals';
import { KEPT_PARAMETERS, SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

const large = (bytes: number): string => `"${'x'.repeat(bytes)}"`;
const bytes = async (): Promise<number> => Number(await store.client.get(`${store.prefix}bytes`));
const share = async (): Promise<number> => Number.parseInt((await store.client.get(`${store.prefix}share`)) ?? '', 10);
/** Reserve of each run under way, for an outcome of OUTCOME bytes (parts/memory.lua). */
const [RESERVED, OUTCOME] = [640, 512];

/** Creates unpromised ended runs. */
async function ended(count: number, result = '1'): Promise<void> {
  for (let n = 0; n < count; n++) {
    await store.accept(`old${n}`, { app: 'old' });
    await store.take('old', n + 1, 1, 'old');
    await store.endAs(`old${n}`, `old:${n + 1}`, { result });
  }
}

test('an outcome that exceeds the share ends its run as output_too_large, and a repeat gets the same answer', async () => {
  const token = await store.running('a', { promised: true });
  await store.leaveRoom(10_000);
  expect(await store.endAs('a', token, { result: large(20_000), ms: '12.5' })).toEqual(['refused', 0, 0]);
  expect(await store.fate('a')).toBe('output_too_large');
  expect(await store.record('a')).toMatchObject({ state: 'failed', body: '', ms: '12.5' });
  expect(await store.endAs('a', token, { result: large(20_000) })).toEqual(['refused', 0, 0]);
  expect(await bytes()).toBeLessThan(await share());
});

test('an error that exceeds the share is replaced, too', async () => {
  const token = await store.running('a', { promised: true });
  await store.leaveRoom(10_000);
  const error = JSON.stringify({ code: 'function_error', message: large(20_000) });
  expect(await store.endAs('a', token, { state: 'failed', error })).toEqual(['refused', 0, 0]);
  expect(await store.fate('a')).toBe('output_too_large');
});

test('a refused outcome is delivered to the webhook', async () => {
  const token = await store.running('a', { hook: 'http://receiver/' });
  await store.leaveRoom(10_000);
  expect(await store.endAs('a', token, { result: large(20_000) })).toEqual(['refused', 0, 1]);
  expect(await store.begin('a', 1, 't')).toBe('begun');
});

test('with a full share, every run under way still ends with a small outcome', async () => {
  const tokens: string[] = [];
  for (let n = 1; n <= 20; n++) {
    await store.accept(`r${n}`, { promised: true });
    await store.take('w', n, 1);
    tokens.push(`w:${n}`);
  }
  await store.leaveRoom(0);
  expect((await store.append('r1', 'w:1', 1, 'x'.repeat(100)))[0]).toBe('full');
  for (const [at, token] of tokens.entries()) {
    const [code] = await store.endAs(`r${at + 1}`, token, { result: large(OUTCOME - 2) });
    expect(code).toBe('ended');
  }
  expect(await bytes()).toBeLessThanOrEqual((await share()) + 20 * RESERVED);
});

test('items that exceed the share are not written, earlier items stay, and a smaller batch may fit', async () => {
  const token = await store.running('a', { promised: true });
  expect((await store.append('a', token, 1, 'first'))[0]).toBe('ok');
  await store.leaveRoom(10_000);
  const before = await bytes();
  expect((await store.append('a', token, 2, 'x'.repeat(20_000))).slice(0, 2)).toEqual(['full', 1]);
  expect((await store.append('a', token, 2, 'x'.repeat(20_000))).slice(0, 2)).toEqual(['full', 1]);
  expect(await bytes()).toBe(before);
  expect((await store.append('a', token, 2, 'x'.repeat(2_000)))[0]).toBe('ok');
  expect(await store.client.xlen(`${store.prefix}items:a`)).toBe(2);
});

test('a plain stream with a full window continues with a full share', async () => {
  const token = await store.running('a', { paced: true, live: 'i' });
  const item = 'x'.repeat(136);
  for (let n = 1; n <= 20; n++) await store.appendWindowed('a', token, n, [item], n - 1, 1_000);
  await store.leaveRoom(500);
  for (let n = 21; n <= 60; n++)
    expect((await store.appendWindowed('a', token, n, [item], n - 1, 1_000))[0]).toBe('ok');
  expect(await bytes()).toBeLessThanOrEqual(await share());
  const before = await store.record('a');
  const [code, last] = await store.appendWindowed('a', token, 61, ['y'.repeat(5_000)], 60, 1_000);
  expect([code, last]).toEqual(['full', 60]);
  const { items, size } = await store.record('a');
  expect(items).toBe(before.items);
  const kept = await store.client.xlen(`${store.prefix}items:a`);
  expect(Number(size)).toBe(4_500 + kept * 150);
  expect((await store.appendWindowed('a', token, 61, [item], 60, 1_000))[0]).toBe('ok');
});

test('a head that exceeds the share is not written', async () => {
  const token = await store.running('a');
  await store.leaveRoom(5_000);
  const [code] = (await store.run('head', 'a', token, large(20_000))) as string[];
  expect(code).toBe('full');
  expect(await store.record('a')).not.toHaveProperty('head');
});

test('a log keeps the newest lines that fit into the share, and counts the dropped lines', async () => {
  const token = await store.running('a');
  await store.log('a', token, 1, ['x'.repeat(3_000)], 100_000);
  await store.leaveRoom(1_000);
  for (let n = 2; n <= 5; n++) expect(await store.log('a', token, n, [`${n}`.repeat(3_000)], 100_000)).toBe('ok');
  expect(await store.client.llen(`${store.prefix}log:a`)).toBe(1);
  expect((await store.record('a')).lines).toBe('5');
  expect(await store.log('a', token, 6, ['y'.repeat(30_000)], 100_000)).toBe('ok');
  expect((await store.record('a')).lines).toBe('6');
  expect(await bytes()).toBeLessThanOrEqual(await share());
});

test('a write requests room if unpromised ended runs may go, and fits after they have gone', async () => {
  await ended(10, large(3_000));
  const token = await store.running('a', { promised: true });
  await store.leaveRoom(0, true);
  expect((await store.append('a', token, 1, 'x'.repeat(10_000)))[0]).toBe('again');
  expect(await store.endAs('a', token, { result: large(10_000) })).toEqual(['again', 0, 0]);
  expect(await store.reserve('a', token, 10_000)).toBe('again');
  expect(Number(await store.client.get(`${store.prefix}wanted`))).toBeGreaterThanOrEqual(10_000);
  await store.sweep((await share()) - 12_000);
  expect((await store.append('a', token, 1, 'x'.repeat(10_000)))[0]).toBe('ok');
});

test('a repeated reservation counts once, and the result counts once at the end', async () => {
  const result = large(300_000);
  const token = await store.running('a', { promised: true });
  const before = await bytes();
  expect(await store.reserve('a', token, result.length)).toBe('ok');
  const reserved = await bytes();
  expect(reserved - before).toBeGreaterThanOrEqual(result.length);
  expect(await store.reserve('a', token, result.length)).toBe('ok');
  expect(await bytes()).toBe(reserved);
  await store.leaveRoom(0);
  expect(await store.endAs('a', token, { result })).toEqual(['ended', 0, 0]);
  expect(await bytes()).toBeLessThan(before + result.length * 1.25);
});

test('reserved room is not given to another run, and every end releases it', async () => {
  const token = await store.running('a', { promised: true });
  await store.accept('b', { promised: true });
  await store.take('w', 2, 1);
  const before = await bytes();
  await store.leaveRoom(400_000);
  expect(await store.reserve('a', token, 300_000)).toBe('ok');
  expect(await store.reserve('b', 'w:2', 300_000)).toBe('full');
  await store.endAs('a', token, { state: 'failed', error: '{"code":"worker_lost"}' });
  expect(await store.reserve('b', 'w:2', 300_000)).toBe('ok');
  await store.pass(16_000);
  expect(await store.fate('b')).toBe('worker_lost');
  expect(await bytes()).toBe(before + 2 * KEPT_PARAMETERS);
});

test('a lost attempt reserves nothing', async () => {
  await store.running('a');
  const before = await bytes();
  expect(await store.reserve('a', 'w:0', 300_000)).toBe('lost');
  expect(await bytes()).toBe(before);
});

test('with a full share, each attempt builds the envelope again and is recorded without the answer', async () => {
  const token = await store.running('a', { hook: 'http://receiver/' });
  await store.append('a', token, 1, 'x'.repeat(20_000));
  await store.endAs('a', token, { items: 1, streamed: 1 });
  await store.leaveRoom(1_000);
  expect(await store.begin('a', 1, 't')).toBe('begun');
  const kept = await store.run('delivery-record', 10_000, 'a', 1, 't', `-:${'x'.repeat(20_000)}`, 'kept', '', '');
  expect(kept).toEqual([1]);
  expect(await store.record('a')).not.toHaveProperty('envelope');
  const at = 1_795_233_600_123;
  const text = `{"attempt":1,"at":${at},"durationMs":12.25,"status":500,"answer":${large(4_000)},"state":"failed"`;
  expect(await store.run('delivery-record', 10_000, 'a', 1, 't', text, 'failed', '', '')).toEqual([1]);
  const [attempt] = await store.client.lrange(`${store.prefix}attempts:a`, 0, -1);
  expect(JSON.parse(attempt as string)).toEqual({ attempt: 1, at, durationMs: 12.25, status: 500, state: 'failed' });
  expect(await bytes()).toBeLessThanOrEqual(await share());
});
