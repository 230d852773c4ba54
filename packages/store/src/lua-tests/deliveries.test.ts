// Contract 4: one attempt at a time under a lease, its envelope kept before it is sent, with a clock that the test moves.
import { readFileSync } from 'node:fs';
import { envelope } from '@inference-proxy/contracts';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ENVELOPE_PIECES, envelopeFrom, keptEnvelope } from '../deliveries/kept-envelope.ts';
import { isHeld } from '../deliveries/stored-delivery.ts';
import { type EndOptions, type Reply, SteppedStore } from './stepped-store.ts';

const HANDOVER = 10_000;
const LEASE = 20_000;
const HOUR = 3_600_000;

let server: SteppedStore;
let store: SteppedStore;
beforeAll(async () => {
  server = await SteppedStore.open();
});
afterAll(() => server.close());
beforeEach(() => {
  store = server.fresh();
});

/** A run that has ended, its delivery due; without a value, so that its envelope is for the dispatcher to make. */
async function due(
  id = 'r',
  outcome: EndOptions = { state: 'failed', error: '{"code":"function_error"}' },
): Promise<string> {
  await store.endAs(id, await store.running(id, { hook: 'http://a/' }), outcome);
  return id;
}

const begin = async (id: string, attempt: number, token: string): Promise<Reply[]> =>
  ((await store.run('delivery-begin', LEASE, ...ENVELOPE_PIECES, id, attempt, token)) as Reply[][])[0] as Reply[];
const keep = async (id: string, attempt: number, token: string, text: string): Promise<Reply> =>
  ((await store.run('delivery-record', HANDOVER, id, attempt, token, text, 'kept', '', '')) as Reply[])[0] as Reply;
const redeliver = async (id: string, request = 'q1'): Promise<Reply> =>
  ((await store.run('delivery-redeliver', HANDOVER, request, id)) as Reply[])[0] as Reply;
const kept = (reply: Reply[]): Reply | undefined => reply[5];

test('an envelope that was kept before an attempt was sent is that of every later attempt, though nothing was recorded', async () => {
  const id = await due();
  expect(kept(await begin(id, 1, 't1'))).toBe('');
  expect(await keep(id, 1, 't1', '1:{}')).toBe(1);
  await store.advance(LEASE + 1000);
  expect(kept(await begin(id, 1, 't2'))).toBe('1:{}');
  expect(await store.recordAttempt(id, 1, 't2', 'pending', 0)).toBe(1);
  expect(kept(await begin(id, 2, 't3'))).toBe('1:{}');
  expect(await store.recordAttempt(id, 2, 't3', 'delivered')).toBe(1);
  expect(await redeliver(id)).toBe(3);
  expect(kept(await begin(id, 3, 't4'))).toBe('1:{}');
});

const DAY = 24 * HOUR;
test.each<[string, string, number]>([
  ['an object', '{"n":1.0}', 0],
  ['a text that is in the run id, too', 'r', 1],
  ['characters of several bytes', '"naïve \u2028 🚀"', 999],
  ['much', `"${'x'.repeat(100_000)}"`, 61_000],
  ['null', 'null', 40 * DAY + 5 * HOUR],
  ['a list', '[1]', 500 * DAY - 3 * HOUR],
])(
  'the envelope of a run that returned %s is kept as its first attempt begins, to the byte as the answer had it',
  async (_name, result, later) => {
    await store.advance(later);
    const id = await due('r', { result, ms: '12.5' });
    await store.advance(1500);
    const [, , , , , text, stored, ...more] = (await begin(id, 1, 't1')) as string[];
    expect(more).toEqual([]);
    const endedAt = Number((await store.record(id)).ended);
    const bytes = envelope(id, {
      state: 'succeeded',
      items: 0,
      streamed: false,
      runTimeMs: '12.5',
      endedAt,
      result: Buffer.from(result),
    });
    expect(envelopeFrom(Buffer.from(text as string), Buffer.from(stored as string)).toString()).toBe(bytes.toString());
    expect((text as string).length).toBeLessThan(250);
    expect(await keep(id, 1, 't1', '1:other')).toBe(1);
    expect(await store.record(id)).toMatchObject({ envelope: text });
  },
);

test('dates of envelopes are right on the days that calendars get wrong', async () => {
  const days = [
    '1970-01-01',
    '1999-12-31',
    '2000-02-28',
    '2000-02-29',
    '2000-03-01',
    '2024-02-29',
    '2027-02-28',
    '2027-03-01',
    '2100-02-28',
    '2100-03-01',
    '9999-12-31',
  ];
  const times = days.flatMap((day) => ['T00:00:00.000Z', 'T23:59:59.999Z', 'T11:02:09.010Z'].map((time) => day + time));
  const source = readFileSync(new URL('../../lua/shared/iso-time.lua', import.meta.url), 'utf8');
  const script = `${source} local all = {} for at = 1, #ARGV do all[at] = iso_time(tonumber(ARGV[at])) end return all`;
  expect(await store.client.eval(script, 0, ...times.map((time) => Date.parse(time)))).toEqual(times);
});

test.each<[string, EndOptions]>([
  ['failed', { state: 'failed', error: '{"code":"function_error"}', result: '' }],
  ['returned nothing', { result: '' }],
  ['yielded items', { streamed: 1 }],
  ['was answered by a server of its own', { result: 'text', head: '{"s":200}' }],
])('of a run that %s nothing is kept as its first attempt begins', async (_name, outcome) => {
  const id = await due('r', outcome);
  const reply = await begin(id, 1, 't1');
  expect([kept(reply), reply.length]).toEqual(['', 10]);
  expect(await store.record(id)).not.toHaveProperty('envelope');
});

test('an attempt that another one has overtaken keeps no envelope, and asked again nothing changes', async () => {
  const id = await due();
  await begin(id, 1, 't1');
  await store.advance(LEASE + 1000);
  await begin(id, 1, 't2');
  expect(await keep(id, 1, 't1', '1:old')).toBe(0);
  expect(await keep(id, 1, 't2', '1:new')).toBe(1);
  expect(await keep(id, 1, 't2', '1:new')).toBe(1);
  expect(await store.record(id)).toMatchObject({ envelope: '1:new' });
});

test('an envelope that is large is counted with its run, once, and taken off with it', async () => {
  const id = await due();
  await begin(id, 1, 't1');
  const before = Number(await store.client.get(`${store.prefix}bytes`));
  const text = `-:${'x'.repeat(10_000)}`;
  await keep(id, 1, 't1', text);
  await keep(id, 1, 't1', text);
  const after = Number(await store.client.get(`${store.prefix}bytes`));
  expect(after - before).toBeGreaterThanOrEqual(text.length);
  expect(after - before).toBeLessThan(text.length + 1000);
  await store.recordAttempt(id, 1, 't1', 'delivered');
  await store.advance(2 * 60_000);
  await store.sweep();
  expect(await store.client.get(`${store.prefix}bytes`)).toBe('0');
});

test.each<[string, number, Reply, Reply]>([
  ['while it is under way', 0, 'busy', -1],
  ['a second before its lease is over', LEASE - 1000, 'busy', -1],
  ['when its lease is over', LEASE + 1000, 'begun', 2],
  ['where the clock has stepped back a little', -1000, 'busy', -1],
  ['where the clock has stepped back an hour since', -HOUR, 'begun', 2],
])(
  'a redelivery and the next attempt of a delivery whose attempt was begun and not recorded, %s',
  async (_name, stepMs, begun, asked) => {
    const id = await due();
    await begin(id, 1, 't1');
    await store.recordAttempt(id, 1, 't1', 'pending', 0);
    await begin(id, 2, 't2');
    await store.advance(stepMs);
    expect(isHeld((await store.record(id)).hold, await store.now())).toBe(begun === 'busy');
    expect(await redeliver(id)).toBe(asked);
    // What was due at a time of the clock before is early by the one of now; a redelivery is due at once.
    expect((await begin(id, 2, 't3'))[0]).toBe(begun);
  },
);

test('a redelivery asked for twice is one, by another request it is refused, and nothing is redelivered of a run without a webhook', async () => {
  const id = await due();
  await begin(id, 1, 't1');
  await store.recordAttempt(id, 1, 't1', 'delivered');
  expect(await redeliver(id, 'q1')).toBe(2);
  expect(await redeliver(id, 'q1')).toBe(2);
  expect(await redeliver(id, 'q2')).toBe(-1);
  await store.end('plain', await store.running('plain'));
  expect(await redeliver('plain')).toBe(0);
  expect(await redeliver('unknown')).toBe(0);
});

test.each([
  ['an object', '{"n":1.0}'],
  ['a text that is in the run id, too', '1'],
  ['no text at all', ''],
  ['characters of several bytes', '"naïve \u2028 🚀"'],
])('an envelope whose result is %s is kept around it, and comes back as it was', (_name, text) => {
  const result = Buffer.from(text);
  const bytes = Buffer.from(`{"run_id":"0199-1","result":${text},"error":"é"}`);
  const stored = keptEnvelope(bytes, result);
  expect(stored.length).toBeLessThanOrEqual(bytes.length - result.length + 4);
  expect(envelopeFrom(stored, result)).toEqual(bytes);
});

test.each([
  ['has none', undefined],
  ['is put in another way than it is stored', Buffer.from('bytes')],
])('an envelope whose run has a result that %s is kept whole', (_name, result) => {
  const bytes = Buffer.from('{"result":[1.0,"\u2028"]}');
  expect(envelopeFrom(keptEnvelope(bytes, result), Buffer.from('whatever'))).toEqual(bytes);
});
