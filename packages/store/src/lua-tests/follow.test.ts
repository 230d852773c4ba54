// Contract 1, "Disconnects", and Contract 5, "Resume: `GET /runs/{run_id}/stream`": lua/follow, lua/unfollow and lua/attend, case by case.
import { expect, test } from '@jest/globals';
import { SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

const followers = async (id: string): Promise<string | undefined> => (await store.record(id)).followers;

test('follow reads from inside an entry, and registers if the page reaches the end of an open run', async () => {
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

test('a reader that is behind is registered too, and gets later items live', async () => {
  const token = await store.running('a');
  for (const n of [1, 2, 3]) await store.append('a', token, n, 'x'.repeat(1000));
  const [, , , registered, entries] = await store.follow('a', 0, { bytes: 2300 });
  expect(registered).toBe(0);
  expect(entries).toHaveLength(2);
  expect(await followers('a')).toBe('g1:i');
  expect((await store.follow('a', 2, { bytes: 2300 }))[3]).toBe(1);
});

test('the pages of one call share a bound, and at least one entry is returned', async () => {
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

test('the results of one call share a bound, and at least one result is returned', async () => {
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

test('the last page of an ended run has the outcome, and no follower is registered', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'a');
  await store.end('a', token, 1);
  const [state, , last, registered, entries, outcome] = await store.follow('a', 0);
  expect([state, last, registered]).toEqual(['succeeded', 1, 0]);
  expect(entries).toHaveLength(1);
  expect(outcome).toHaveLength(8);
  expect(await store.follow('x', 0)).toEqual([]);
});

test('an overtaken follow or unfollow does nothing', async () => {
  await store.accept('a', { absent: 0 });
  await store.follow('a', 0, { number: 5 });
  await store.unfollow('a', 'g1', 4);
  expect(await followers('a')).toBe('g1:i');
  expect(await store.follow('a', 0, { number: 4 })).toEqual(['stale']);
});

test('a reader of the outcome does not keep items from another reader of its gateway', async () => {
  await store.accept('a');
  await store.follow('a', 0, { mode: 'o' });
  expect(await followers('a')).toBe('g1:o');
  await store.follow('a', 0, { mode: 'i' });
  await store.follow('a', 0, { mode: 'o' });
  expect(await followers('a')).toBe('g1:i');
});

test('after the last disconnect a run is cancelled at once, after a time, or never', async () => {
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

test('a reader that returns in time keeps the run', async () => {
  await store.accept('a', { absent: 5_000, live: 'i' });
  await store.unfollow('a');
  await store.follow('a', 0, { by: 'g2' });
  await store.pass(6_000);
  expect(await store.fate('a')).toBe('queued');
  expect(await store.client.exists(`${store.prefix}absent`)).toBe(0);
});

test('a run with onDisconnect=cancel is not cancelled before its first reader', async () => {
  await store.reap();
  await store.accept('a', { absent: 0, promised: true });
  await store.renew('w');
  await store.pass(10_000);
  expect(await store.fate('a')).toBe('queued');
});

test('the time without a reader starts again at each last disconnect', async () => {
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

test('the readers of a dead gateway count as gone at the end of its lease, and then the time without a reader starts', async () => {
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

test('a reader that is still catching up keeps the run', async () => {
  const token = await store.running('a', { absent: 2_000, live: 'i' });
  for (const n of [1, 2, 3]) await store.append('a', token, n, 'x'.repeat(1000));
  await store.reap();
  await store.unfollow('a');
  expect((await store.follow('a', 0, { by: 'g2', number: 1, bytes: 1500 }))[3]).toBe(0);
  await store.pass(3_000);
  expect((await store.record('a')).cancel).toBeUndefined();
});

test('a running run is flagged when its time without a reader is over', async () => {
  const token = await store.running('a', { absent: 2_000, live: 'i' });
  await store.reap();
  await store.unfollow('a');
  await store.pass(2_100);
  expect(await store.renew('w', ['a', token])).toEqual([[1, 0, 1]]);
});

test('the disconnect of one gateway does not affect other gateways', async () => {
  await store.accept('a', { absent: 0, live: 'i' });
  await store.follow('a', 0, { by: 'g2', number: 1 });
  await store.unfollow('a', 'g1');
  expect(await followers('a')).toBe('g2:i');
  expect(await store.fate('a')).toBe('queued');
});

test('the mode of a gateway widens with its readers', async () => {
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

test('attend registers missing followers again, and returns the number of followed runs', async () => {
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

test('a reader’s position counts only up to the last item', async () => {
  const token = await store.running('a', { live: 'i', paced: true });
  await store.append('a', token, 1, 'a');
  await store.attend([['a', 1_000_000, 'i']]);
  expect((await store.record('a')).taken).toBe('1');
});

test('an overtaken attend registers no follower again', async () => {
  await store.accept('a', { live: 'i' });
  await store.unfollow('a', 'g1', 7);
  expect(await store.attend([['a', 0, 'i']], 'g1', 7)).toEqual(['stale']);
  expect(await followers('a')).toBeUndefined();
});

test('a dead gateway is removed from its runs: plain runs are cancelled, and their workers are notified', async () => {
  const token = await store.running('a', { absent: 0, live: 'i' });
  await store.pass(14_000);
  await store.renew('w', ['a', token]);
  await store.pass(2_000);
  expect(await store.renew('w', ['a', token])).toEqual([[1, 0, 1]]);
  expect(await store.client.keys(`${store.prefix}following:*`)).toEqual([]);
  expect(await store.client.exists(`${store.prefix}numbers`)).toBe(0);
});

test('an ended run is forgotten only after its last gateway has finished reading', async () => {
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

test('a run whose reading gateway died is kept only for the gateway’s lease', async () => {
  const token = await store.running('a');
  await store.append('a', token, 1, 'item');
  await store.follow('a', 0);
  await store.end('a', token, 1);
  await store.pass(21_000);
  await store.sweep(0);
  expect(await store.record('a')).toEqual({});
});
