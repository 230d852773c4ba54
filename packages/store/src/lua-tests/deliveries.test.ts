// Contract 4: the scripts of deliveries. One attempt at a time under a lease, and an envelope that is stored before it is sent.
import { envelope } from '@inference-proxy/contracts';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ENVELOPE_PIECES, envelopeFrom, keptEnvelope } from '../deliveries/kept-envelope.ts';
import { isHeld } from '../runs/codec.ts';
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

/** Ends a run whose delivery becomes due. The run has no value, so the dispatcher must build the envelope. */
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

test('a stored envelope serves every later attempt, even if no attempt was recorded', async () => {
  const id = await due();
  expect(kept(await begin(id, 1, 't1'))).toBe('');
  expect(await keep(id, 1, 't1', '1:{}')).toBe(1);
  store.advance(LEASE + 1000);
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
  ['a text that the run id contains', 'r', 1],
  ['characters of several bytes', '"naïve \u2028 🚀"', 999],
  ['much', `"${'x'.repeat(100_000)}"`, 61_000],
  ['null', 'null', 40 * DAY + 5 * HOUR],
  ['a list', '[1]', 500 * DAY - 3 * HOUR],
])(
  'the first attempt stores the envelope of a run that returned %s, byte for byte as in the answer',
  async (_name, result, later) => {
    store.advance(later);
    const id = await due('r', { result, ms: '12.5' });
    store.advance(1500);
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

test('envelopes have the right date on difficult days of the calendar', async () => {
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
  const ends: Reply[] = [];
  for (const time of times) {
    store = server.fresh();
    const id = await due('r', { result: '1' });
    await store.client.hset(`${store.prefix}run:${id}`, 'ended', Date.parse(time));
    ends.push(kept(await begin(id, 1, 't1')) ?? '');
  }
  expect(ends).toEqual(times.map((time) => expect.stringContaining(`"${time}"`)));
});

test.each<[string, EndOptions]>([
  ['failed', { state: 'failed', error: '{"code":"function_error"}', result: '' }],
  ['returned nothing', { result: '' }],
  ['yielded items', { streamed: 1 }],
  ['was answered by a custom runtime', { result: 'text', head: '{"s":200}' }],
])('of a run that %s nothing is kept as its first attempt begins', async (_name, outcome) => {
  const id = await due('r', outcome);
  const reply = await begin(id, 1, 't1');
  expect([kept(reply), reply.length]).toEqual(['', 10]);
  expect(await store.record(id)).not.toHaveProperty('envelope');
});

test('a superseded attempt stores no envelope, and a repeat changes nothing', async () => {
  const id = await due();
  await begin(id, 1, 't1');
  store.advance(LEASE + 1000);
  await begin(id, 1, 't2');
  expect(await keep(id, 1, 't1', '1:old')).toBe(0);
  expect(await keep(id, 1, 't2', '1:new')).toBe(1);
  expect(await keep(id, 1, 't2', '1:new')).toBe(1);
  expect(await store.record(id)).toMatchObject({ envelope: '1:new' });
});

test('a large envelope counts once with its run, and its bytes are freed with the run', async () => {
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
  store.advance(2 * 60_000);
  await store.sweep();
  expect(await store.client.get(`${store.prefix}bytes`)).toBe('0');
});

test.each<[string, number, Reply, Reply]>([
  ['while it is under way', 0, 'busy', -1],
  ['a second before its lease is over', LEASE - 1000, 'busy', -1],
  ['when its lease is over', LEASE + 1000, 'begun', 2],
  ['after the clock has stepped back a little', -1000, 'busy', -1],
  ['after the clock has stepped back an hour', -HOUR, 'begun', 2],
])(
  'redelivery and next attempt of a delivery whose attempt began and was not recorded: %s',
  async (_name, stepMs, begun, asked) => {
    const id = await due();
    await begin(id, 1, 't1');
    await store.recordAttempt(id, 1, 't1', 'pending', 0);
    await begin(id, 2, 't2');
    store.advance(stepMs);
    expect(isHeld((await store.record(id)).hold, store.now())).toBe(begun === 'busy');
    expect(await redeliver(id)).toBe(asked);
    // The new clock is behind the next attempt's time, so the attempt is early. A redelivery is due at once.
    expect((await begin(id, 2, 't3'))[0]).toBe(begun);
  },
);

test('a repeated redelivery request counts once, another request is refused, and a run without a webhook has no redelivery', async () => {
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
  ['a text that the run id contains', '1'],
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
  ['is written in another form than the stored form', Buffer.from('bytes')],
])('an envelope whose run has a result that %s is kept whole', (_name, result) => {
  const bytes = Buffer.from('{"result":[1.0,"\u2028"]}');
  expect(envelopeFrom(keptEnvelope(bytes, result), Buffer.from('whatever'))).toEqual(bytes);
});
