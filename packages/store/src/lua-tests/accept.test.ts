// Contract 1: lua/accept, case by case.
import { expect, test } from '@jest/globals';
import { SteppedStore, steppedStores } from './stepped-store.ts';

/** Reserve of each run under way (parts/memory.lua). */
const RESERVED = 640;
/** Bytes that a run counts: open, with an idempotency key, and ended with its parameters (parts/memory.lua). */
const [RUN, KEYED, ENDED] = [530, 780, 562];

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

test('a repeated accept gets the first answer, and the run is queued once', async () => {
  expect(await store.accept('a')).toBe('accepted');
  store.advance(10);
  expect(await store.accept('a')).toBe('accepted');
  expect(await store.take('w', 1, 5)).toEqual(['a']);
  expect(await store.accept('a')).toBe('accepted');
  expect(await store.take('w', 2, 5)).toEqual([]);
});

test('an accept that Redis held back past its time is refused and leaves nothing', async () => {
  expect(await store.accept('a', { executeIn: -1 })).toBeUndefined();
  expect(await store.record('a')).toEqual({});
});

test('a run whose cancel arrived first is not accepted for a minute', async () => {
  expect(await store.cancel('a')).toBe('unknown');
  expect(await store.accept('a')).toBe('cancelled');
  expect(await store.take('w', 1, 5)).toEqual([]);
});

test('a client that cancels unknown runs leaves no key, for any number of invented ids', async () => {
  const before = await store.client.keys('*');
  for (let n = 0; n < 100; n++) expect(await store.cancel(`made-up-${n}`, 'r1', 0)).toBe('unknown');
  expect(await store.client.keys('*')).toEqual(before);
  expect(await store.accept('made-up-7')).toBe('accepted');
});

test('a full queue refuses further runs', async () => {
  expect(await store.accept('a', { limit: 1 })).toBe('accepted');
  expect(await store.accept('b', { limit: 1 })).toBe('overloaded');
  expect(await store.record('b')).toEqual({});
  expect(await store.accept('c', { limit: 1, app: 'other' })).toBe('accepted');
});

test('a cancelled run no longer counts in its queue', async () => {
  await store.accept('a', { limit: 1 });
  expect(await store.accept('b', { limit: 1 })).toBe('overloaded');
  expect(await store.cancel('a')).toBe('queued');
  expect(await store.accept('b', { limit: 1 })).toBe('accepted');
  expect(await store.take('w', 1, 5)).toEqual(['b']);
});

test('runs of one call count against the limit together', async () => {
  const head = [store.now() + 2000, 'g1', 15_000, 1e9];
  const kind = [1, 'app', 'fn', '60000 - -', 2, 600_000, '-', 0];
  const call = (id: string) => [1, id, '{}', 0];
  const [, answers] = (await store.run('accept', ...head, ...kind, ...call('a'), ...call('b'), ...call('c'))) as [
    number,
    string[],
  ];
  expect(answers).toEqual(['accepted', 'accepted', 'overloaded']);
  expect(await store.take('w', 1, 5)).toEqual(['a', 'b']);
});

test('in a full store the oldest unpromised ended run makes room, and a promised run stays', async () => {
  await store.end('a', await store.running('a'));
  store.advance(1);
  await store.accept('b');
  await store.take('w', 2, 1);
  await store.end('b', 'w:2');
  expect(await store.accept('c', { room: RUN + ENDED + RESERVED })).toBe('accepted');
  expect([await store.fate('a'), await store.fate('b')]).toEqual([undefined, 'succeeded']);
  expect(await store.accept('d', { room: RUN + KEYED + 2 * RESERVED, claim: 'k', fingerprint: 'f' })).toBe('accepted');
  expect(await store.accept('e', { room: RUN + KEYED + 2 * RESERVED, claim: 'l', fingerprint: 'f' })).toBe('full');
  expect(await store.client.exists(`${store.prefix}idempotency:l`)).toBe(0);
  expect(Number(await store.client.get(`${store.prefix}bytes`))).toBe(RUN + KEYED);
});

test('the same key and request join the run, another request is a conflict', async () => {
  await store.accept('a', { claim: 'k', fingerprint: 'f' });
  expect(await store.accept('b', { claim: 'k', fingerprint: 'f' })).toBe('joined a');
  expect(await store.accept('c', { claim: 'k', fingerprint: 'g' })).toBe('conflict');
  await store.take('w', 1, 5);
  await store.end('a', 'w:1');
  expect(await store.accept('d', { claim: 'k', fingerprint: 'f' })).toBe('joined a');
});

test('a refused call claims no key', async () => {
  await store.accept('full', { limit: 1 });
  expect(await store.accept('a', { limit: 1, claim: 'k', fingerprint: 'f' })).toBe('overloaded');
  expect(await store.accept('b', { claim: 'k', fingerprint: 'g' })).toBe('accepted');
});

test('a run that never started frees its key, and a requeued run keeps it', async () => {
  await store.accept('a', { claim: 'k', fingerprint: 'f' });
  await store.cancel('a');
  const token = await store.running('b', { claim: 'k', fingerprint: 'g' });
  expect(await store.fate('b')).toBe('running');
  expect(await store.end('b', token, 0, 1)).toEqual(['requeued', 0, 0]);
  expect(await store.cancel('b')).toBe('queued');
  expect(await store.accept('c', { claim: 'k', fingerprint: 'g' })).toBe('joined b');
});

test('a freed key that another run has claimed stays with that run', async () => {
  await store.accept('a', { claim: 'k', fingerprint: 'f', hook: 'http://receiver/' });
  await store.cancel('a');
  await store.running('b', { claim: 'k', fingerprint: 'g' });
  await store.begin('a', 1, 't');
  await store.recordAttempt('a', 1, 't', 'delivered');
  store.advance(61_000);
  await store.sweep();
  expect(await store.record('a')).toEqual({});
  expect(await store.accept('c', { claim: 'k', fingerprint: 'g' })).toBe('joined b');
});

test('a key lives as long as its run, and with a webhook until the retention after the delivery', async () => {
  const token = await store.running('a', { claim: 'k', fingerprint: 'f', hook: 'http://receiver/' });
  await store.end('a', token);
  store.advance(61_000);
  await store.sweep();
  expect(await store.accept('b', { claim: 'k', fingerprint: 'f' })).toBe('joined a');
  await store.begin('a', 1, 't');
  await store.recordAttempt('a', 1, 't', 'delivered');
  store.advance(59_000);
  await store.sweep();
  expect(await store.accept('b', { claim: 'k', fingerprint: 'f' })).toBe('joined a');
  store.advance(2_000);
  await store.sweep();
  expect(await store.client.keys(`${store.prefix}idempotency:*`)).toEqual([]);
  expect(await store.accept('b', { claim: 'k', fingerprint: 'g' })).toBe('accepted');
});

test.each([
  ['app_failed_to_start', '0', 'accepted'],
  ['unavailable', '0', 'accepted'],
  ['cancelled', '0', 'accepted'],
  ['unavailable', '12.5', 'joined a'],
  ['cancelled', '12.5', 'joined a'],
  ['function_error', '0', 'joined a'],
  ['invalid_input', '0.07', 'accepted'],
  ['not_found', '0.07', 'accepted'],
])(
  'a run that a worker ends as %s after %s ms frees its key only if its function was not reached',
  async (code, ms, answer) => {
    const token = await store.running('a', { claim: 'k', fingerprint: 'f' });
    const error = JSON.stringify({ code, message: '"code":"app_failed_to_start"' });
    await store.endAs('a', token, { state: 'failed', ms, error });
    expect(await store.accept('b', { claim: 'k', fingerprint: 'f' })).toBe(answer);
  },
);

test('a run whose worker vanished keeps its key, because its function may have run', async () => {
  await store.running('a', { claim: 'k', fingerprint: 'f' });
  await store.pass(16_000);
  expect(await store.fate('a')).toBe('worker_lost');
  expect(await store.accept('b', { claim: 'k', fingerprint: 'f' })).toBe('joined a');
});

test.each([
  ['expired', 9_000],
  ['unavailable', 31_000],
])('a run that ended as %s in the queue frees its key', async (fate, waited) => {
  if (fate === 'expired') await store.renew('w');
  await store.accept('a', { claim: 'k', fingerprint: 'f', timeout: fate === 'expired' ? 8_000 : 600_000 });
  await store.pass(waited);
  expect(await store.fate('a')).toBe(fate);
  expect(await store.accept('b', { claim: 'k', fingerprint: 'g' })).toBe('accepted');
});

test('two racing first calls with one key create one run', async () => {
  const head = [store.now() + 2000, 'g1', 15_000, 1e9];
  const kind = [1, 'app', 'fn', '60000 - c', 100, 600_000, '-', 0];
  const call = (id: string) => [1, id, '{}', 4, 'claim', 'k', 'fingerprint', 'f'];
  const [, answers] = (await store.run('accept', ...head, ...kind, ...call('a'), ...call('b'))) as [number, string[]];
  expect(answers).toEqual(['accepted', 'joined a']);
  expect(await store.take('w', 1, 5)).toEqual(['a']);
});
