// The design's rows `follow`, `unfollow` and `attend`, case by case.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { SteppedStore } from './stepped-store.ts';

let server: SteppedStore;
let store: SteppedStore;
beforeAll(async () => {
  server = await SteppedStore.open();
});
beforeEach(() => {
  store = server.fresh();
});
afterAll(() => server.close());

const followers = async (id: string): Promise<string | undefined> => (await store.record(id)).followers;

test('follow reads from inside an entry and registers where it reaches the end of an open run', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'a', 'b');
  await store.append('a', token, 3, 'c');
  expect(await store.follow('a', 1)).toEqual([
    'running',
    token,
    3,
    1,
    [
      ['2-2', 's', 'a\nb'],
      ['3-1', 's', 'c'],
    ],
    [],
    '',
    0,
    [],
    '',
  ]);
  expect(await followers('a')).toBe('g1:i');
});

test('a reader that is behind counts as one, and hears live what comes after its last page', async () => {
  const token = await store.running('a');
  for (const n of [1, 2, 3]) await store.append('a', token, n, 'x'.repeat(1000));
  const [, , , registered, entries] = await store.follow('a', 0, { bytes: 2300 });
  expect(registered).toBe(0);
  expect(entries).toHaveLength(2);
  expect(await followers('a')).toBe('g1:i');
  expect((await store.follow('a', 2, { bytes: 2300 }))[3]).toBe(1);
});

test('the pages of one call are bounded together, and one entry always comes', async () => {
  const token = await store.running('a');
  await store.accept('b');
  await store.take('w', 2, 1);
  await store.append('a', token, 1, 'x'.repeat(5000));
  await store.append('b', 'w:2', 1, 'y');
  const reply = (await store.run('follow', 'g1', 1, 15_000, 100, 'a', 0, 'i', 0, 'b', 0, 'i', 0)) as [
    number,
    unknown[][],
  ];
  expect(reply[1].map((answer) => [(answer[4] as unknown[]).length, answer[3]])).toEqual([
    [1, 1],
    [0, 0],
  ]);
});

test('the results of one call are bounded together, and one always comes', async () => {
  for (const [number, id] of ['a', 'b'].entries()) {
    await store.accept(id);
    await store.take('w', number + 1, 1);
    await store.endAs(id, `w:${number + 1}`, { result: 'x'.repeat(5000) });
  }
  const follow = async (number: number, ...ids: string[]): Promise<unknown[][]> => {
    const runs = ids.flatMap((id) => [id, 0, 'o', '-']);
    const reply = await store.run('follow', 'g1', number, 15_000, 100, ...runs);
    return (reply as [number, unknown[][]])[1].map((answer) => [(answer[5] as unknown[]).length, answer[3]]);
  };
  expect(await follow(1, 'a', 'b')).toEqual([
    [8, 0],
    [0, 0],
  ]);
  expect(await follow(2, 'b')).toEqual([[8, 0]]);
});

test('an ended run gives its outcome with its last page, and nobody is registered', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'a');
  await store.end('a', token, 1);
  const [state, , last, registered, entries, outcome] = await store.follow('a', 0);
  expect([state, last, registered]).toEqual(['succeeded', 1, 0]);
  expect(entries).toHaveLength(1);
  expect(outcome).toHaveLength(8);
  expect(await store.follow('x', 0)).toEqual([]);
});

test('a follow or unfollow that was overtaken does nothing', async () => {
  await store.accept('a', { absent: 0 });
  await store.follow('a', 0, { number: 5 });
  await store.unfollow('a', 'g1', 4);
  expect(await followers('a')).toBe('g1:i');
  expect(await store.follow('a', 0, { number: 4 })).toEqual(['stale']);
});

test('a reader of the outcome does not take the items from another of its gateway', async () => {
  await store.accept('a');
  await store.follow('a', 0, { mode: 'o' });
  expect(await followers('a')).toBe('g1:o');
  await store.follow('a', 0, { mode: 'i' });
  await store.follow('a', 0, { mode: 'o' });
  expect(await followers('a')).toBe('g1:i');
});

test('the last reader’s leaving cancels at once, or after a while without a reader, or never', async () => {
  await store.accept('now', { absent: 0, live: 'i' });
  await store.accept('later', { absent: 20_000, live: 'i' });
  await store.accept('never', { live: 'i' });
  for (const id of ['now', 'later', 'never']) await store.unfollow(id);
  expect(await store.fate('now')).toBe('cancelled');
  await store.pass(19_000);
  expect(await store.fate('later')).toBe('queued');
  await store.pass(1_100);
  expect(await store.fate('later')).toBe('cancelled');
  expect(await store.fate('never')).toBe('queued');
});

test('a reader that comes back in time keeps the run', async () => {
  await store.accept('a', { absent: 5_000, live: 'i' });
  await store.unfollow('a');
  await store.follow('a', 0, { by: 'g2' });
  await store.pass(6_000);
  expect(await store.fate('a')).toBe('queued');
  expect(await store.client.exists(`${store.prefix}absent`)).toBe(0);
});

test('a run that is cancelled at once without a reader is not while it has had none', async () => {
  await store.reap();
  await store.accept('a', { absent: 0, promised: true });
  await store.renew('w');
  await store.pass(10_000);
  expect(await store.fate('a')).toBe('queued');
});

test('the time without a reader begins anew with each last reader', async () => {
  await store.accept('a', { absent: 5_000, live: 'i' });
  await store.renew('w');
  await store.unfollow('a');
  await store.pass(4_000);
  await store.follow('a', 0, { by: 'g2', number: 1 });
  await store.unfollow('a', 'g2', 2);
  await store.pass(4_000);
  expect(await store.fate('a')).toBe('queued');
  await store.pass(1_100);
  expect(await store.fate('a')).toBe('cancelled');
});

test('readers of a gateway that died have gone when its lease runs out: then their run’s time begins', async () => {
  await store.accept('a', { absent: 10_000, live: 'i' });
  await store.follow('a', 0, { by: 'g2', number: 1 });
  await store.unfollow('a', 'g2', 2);
  await store.renew('w');
  await store.pass(14_000);
  await store.renew('w');
  await store.pass(8_000);
  expect(await store.fate('a')).toBe('queued');
  await store.renew('w');
  await store.pass(9_000);
  expect(await store.fate('a')).toBe('cancelled');
});

test('a reader that only catches up keeps the run: it need not have reached the end', async () => {
  const token = await store.running('a', { absent: 2_000, live: 'i' });
  for (const n of [1, 2, 3]) await store.append('a', token, n, 'x'.repeat(1000));
  await store.reap();
  await store.unfollow('a');
  expect((await store.follow('a', 0, { by: 'g2', number: 1, bytes: 1500 }))[3]).toBe(0);
  await store.pass(3_000);
  expect((await store.record('a')).cancel).toBeUndefined();
});

test('a running run is flagged when its time without a reader is up', async () => {
  const token = await store.running('a', { absent: 2_000, live: 'i' });
  await store.reap();
  await store.unfollow('a');
  await store.pass(2_100);
  expect(await store.renew('w', ['a', token])).toEqual([[1, 0, 1]]);
});

test('one gateway’s leaving leaves the others', async () => {
  await store.accept('a', { absent: 0, live: 'i' });
  await store.follow('a', 0, { by: 'g2', number: 1 });
  await store.unfollow('a', 'g1');
  expect(await followers('a')).toBe('g2:i');
  expect(await store.fate('a')).toBe('queued');
});

test('what a gateway follows of a run widens by its readers', async () => {
  await store.accept('a');
  for (const [mode, all] of [
    ['o', 'o'],
    ['l', 'l'],
    ['o', 'l'],
    ['i', 'f'],
    ['l', 'f'],
  ] as const) {
    await store.follow('a', 0, { mode });
    expect(await followers('a')).toBe(`g1:${all}`);
  }
});

test('attend: what is missing is registered again, and the gateway is told how many it stands at', async () => {
  await store.accept('listed');
  await store.accept('unlisted', { absent: 0, live: 'i' });
  const token = await store.running('ended');
  expect(token).toBe('w:1');
  await store.end('listed', token);
  await store.accept('open');
  const [answers, following] = await store.attend([
    ['listed', 0, 'i'],
    ['open', 0, 'o'],
    ['gone', 0, 'i'],
  ]);
  expect(answers).toEqual([['succeeded', 0], ['queued', 0], []]);
  expect(following).toBe(2);
  expect(await followers('open')).toBe('g1:o');
});

test('a reader’s place counts only as far as there are items', async () => {
  const token = await store.running('a', { live: 'i', paced: true });
  await store.append('a', token, 1, 'a');
  await store.attend([['a', 1_000_000, 'i']]);
  expect((await store.record('a')).taken).toBe('1');
});

test('an attend that was overtaken brings nobody back', async () => {
  await store.accept('a', { live: 'i' });
  await store.unfollow('a', 'g1', 7);
  expect(await store.attend([['a', 0, 'i']], 'g1', 7)).toEqual(['stale']);
  expect(await followers('a')).toBeUndefined();
});

test('a dead gateway is dropped from all it followed: plain runs are cancelled, their workers told', async () => {
  const token = await store.running('a', { absent: 0, live: 'i' });
  await store.pass(14_000);
  await store.renew('w', ['a', token]);
  await store.pass(2_000);
  expect(await store.renew('w', ['a', token])).toEqual([[1, 0, 1]]);
  expect(await store.client.keys(`${store.prefix}following:*`)).toEqual([]);
  expect(await store.client.exists(`${store.prefix}numbers`)).toBe(0);
});

test('an ended run is not forgotten while a gateway reads it, and is when the last of them has left', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'item');
  await store.follow('a', 0, { by: 'g1' });
  await store.end('a', token, 1);
  await store.follow('a', 0, { by: 'g2' });
  const makeRoom = async (): Promise<boolean> => {
    await store.sweep(0);
    return (await store.record('a')).state === undefined;
  };
  expect(await makeRoom()).toBe(false);
  await store.unfollow('a', 'g1', 1_000);
  expect(await makeRoom()).toBe(false);
  await store.unfollow('a', 'g2', 1_000);
  expect(await makeRoom()).toBe(true);
});

test('a run whose readers’ gateway died is held for its lease only', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'item');
  await store.follow('a', 0);
  await store.end('a', token, 1);
  await store.pass(21_000);
  await store.sweep(0);
  expect(await store.record('a')).toEqual({});
});
