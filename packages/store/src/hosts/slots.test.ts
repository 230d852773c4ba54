// Contract 4, "Isolation": slots and parked deliveries over all dispatchers, with a clock that the test moves.
import { expect, test } from '@jest/globals';
import { LEASE, type Receivers, steppedReceivers, type Woken } from '../lua-tests/stepped-receivers.ts';

let receivers: Receivers;
steppedReceivers((fresh) => {
  receivers = fresh;
});

test('a project may use its share of a receiver; further deliveries are parked and woken by a freed slot', async () => {
  const slots = [await receivers.enter('a1'), await receivers.enter('a2'), await receivers.enter('a3')];
  expect(await receivers.enter('a4')).toBe('parked host_busy');
  expect(await receivers.enter('b1')).toMatch(/b1/);
  expect(await receivers.parked()).toBe(1);
  expect(await receivers.leave(slots[0] as string, 'good')).toMatchObject([{ project: 'a', run: 'a4' }]);
  expect(await receivers.parked()).toBe(0);
});

test('a receiver’s cap covers all projects, and freed slots go to the projects in turn', async () => {
  const slots: string[] = [];
  for (const run of ['a1', 'a2', 'a3', 'b1', 'b2']) slots.push(await receivers.enter(run));
  for (const run of ['c1', 'd1', 'c2', 'd2']) expect(await receivers.enter(run)).toBe('parked host_busy');
  const woken: Woken[] = [];
  for (const slot of slots) woken.push(...(await receivers.leave(slot, 'good')));
  expect(woken.map(({ project }) => project)).toEqual(['c', 'd', 'c', 'd']);
});

test('the longest parked and the newest delivery are woken in turn, so a backlog does not delay new deliveries', async () => {
  receivers.perProject = 1;
  let slot = await receivers.enter('a0');
  for (let at = 1; at <= 6; at += 1) await receivers.enter(`a${at}`);
  const order: string[] = [];
  for (let at = 0; at < 6; at += 1) {
    const [next] = await receivers.leave(slot, 'good');
    order.push(next?.run as string);
    slot = next?.slot as string;
  }
  expect(order).toEqual(['a1', 'a6', 'a2', 'a5', 'a3', 'a4']);
  await receivers.leave(slot, 'good');
  expect(await receivers.keys()).toEqual(['parked-count', 'slot-number', 'troubled:a', 'watch']);
});

test('a repeated step has no further effect: a slot counts once and is given back once', async () => {
  receivers.perProject = 1;
  const slot = await receivers.enter('a1', 'n', 'same');
  expect(await receivers.enter('a1', 'n', 'same')).toBe(slot);
  await receivers.enter('a2');
  await receivers.enter('a2');
  expect(await receivers.parked()).toBe(1);
  expect(await receivers.leave(slot, 'bad')).toHaveLength(1);
  expect(await receivers.leave(slot, 'bad')).toHaveLength(0);
});

test('a parked delivery that enters in another way is no longer parked', async () => {
  receivers.perProject = 1;
  const slot = await receivers.enter('a1');
  await receivers.enter('a2');
  expect(await receivers.enter('a2', 'p')).toBe('parked host_busy');
  expect(await receivers.enter('a2', 'f')).toMatch(/a2/);
  await receivers.leave(slot, 'good');
  expect(await receivers.enter('a2', 'p')).toBe('parked host_busy');
  expect(await receivers.parked()).toBe(1);
});

test('slots of a dead dispatcher expire: parked deliveries enter, and the dead dispatcher’s deliveries are handed over again', async () => {
  for (const run of ['a1', 'a2', 'a3', 'a4']) await receivers.enter(run);
  receivers.store.advance(LEASE + 5000);
  const { woken, lapsed } = await receivers.look();
  expect(lapsed.sort()).toEqual(['a1', 'a2', 'a3']);
  expect(woken).toMatchObject([{ run: 'a4' }]);
  expect(await receivers.look()).toEqual({ woken: [], lapsed: [] });
});

test('a project that has succeeded may exceed its share, and never uses the share of another project', async () => {
  receivers.perHost = 10;
  receivers.grown = 100;
  const slots: string[] = [];
  for (let at = 1; at <= 7; at += 1) slots.push(await receivers.enter(`a${at}`));
  expect(slots.every((slot) => slot.startsWith('1 a'))).toBe(true);
  expect(await receivers.enter('a8')).toBe('parked host_busy');
  for (const run of ['b1', 'b2', 'b3']) expect(await receivers.enter(run)).toMatch(run);
  expect(await receivers.enter('b4')).toBe('parked host_busy');
  // The receiver is full. A freed slot goes first to a project below its share, and to no project beyond its share.
  expect(await receivers.leave(slots[0] as string, 'good')).toEqual([]);
  expect(await receivers.enter('c1')).toMatch('c1');
});

test('a project that has succeeded is woken beyond its share, and after its first failure only up to its share', async () => {
  receivers.perHost = 20;
  receivers.grown = 5;
  const slots: string[] = [];
  for (let at = 1; at <= 5; at += 1) slots.push(await receivers.enter(`a${at}`));
  for (const run of ['a6', 'a7', 'a8']) expect(await receivers.enter(run)).toBe('parked host_busy');
  expect(await receivers.leave(slots[0] as string, 'good')).toMatchObject([{ run: 'a6' }]);
  expect(await receivers.leave(slots[1] as string, 'bad')).toEqual([]);
  expect(await receivers.leave(slots[2] as string, 'good')).toEqual([]);
  expect(await receivers.leave(slots[3] as string, 'good')).toMatchObject([{ run: expect.stringMatching(/a[78]/) }]);
});

/** Lets runs of a project enter, each at a separate host (`h1` for `a1`). */
async function enterEach(...runs: string[]): Promise<string[]> {
  const answers: string[] = [];
  for (const run of runs) answers.push(await receivers.enter(run, 'n', undefined, `h${run.slice(1)}`));
  return answers;
}

test('a receiver without a success may have one open attempt, and its share after the first success', async () => {
  const [slot = ''] = await enterEach('a1');
  for (const run of ['a2', 'a3', 'a4'])
    expect(await receivers.enter(run, 'n', undefined, 'h1')).toBe('parked host_busy');
  expect(await receivers.leave(slot, 'bad', 'h1')).toMatchObject([{ run: 'a2' }]);
  const [next] = await receivers.leave((await receivers.enter('a5', 'f', undefined, 'h1')) as string, 'none', 'h1');
  expect(next).toBeUndefined();
  const woken = await receivers.leave(`1 a a2 w1`, 'good', 'h1');
  expect(woken.map(({ run }) => run).sort()).toEqual(['a3', 'a4']);
});

test('a project’s share covers all receivers, and freed slots go to its receivers in turn', async () => {
  receivers.project = 3;
  for (let host = 1; host <= 6; host += 1)
    for (const project of 'ab') await receivers.hasSucceeded(project, `h${host}`);
  const slots = await enterEach('a1', 'a2', 'a3');
  expect(await enterEach('a4', 'a5', 'a6')).toEqual(Array.from({ length: 3 }, () => 'parked project_busy'));
  // Another project may still use the same receivers.
  expect(await enterEach('b1', 'b4')).toEqual([expect.stringMatching('b1'), expect.stringMatching('b4')]);
  const woken: Woken[] = [];
  for (const [at, slot] of slots.entries()) woken.push(...(await receivers.leave(slot, 'good', `h${at + 1}`)));
  expect(woken.map(({ run }) => run).sort()).toEqual(['a4', 'a5', 'a6']);
  expect(await receivers.parked()).toBe(0);
});

test('dropping an unused slot wakes no delivery, and the next look wakes the waiting delivery', async () => {
  receivers.project = 1;
  for (const host of ['h1', 'h2']) await receivers.hasSucceeded('a', host);
  const [slot = ''] = await enterEach('a1', 'a2');
  expect(await receivers.drop(slot, 'h1')).toEqual([]);
  expect(await receivers.look()).toMatchObject({ woken: [{ run: 'a2' }], lapsed: [] });
});

test("a project's slots of a dead dispatcher expire, and its other receivers are woken", async () => {
  receivers.project = 1;
  for (const host of ['h1', 'h2']) await receivers.hasSucceeded('a', host);
  await enterEach('a1', 'a2');
  receivers.store.advance(LEASE + 5000);
  const { woken, lapsed } = await receivers.look();
  expect(lapsed).toEqual(['a1']);
  expect(woken).toMatchObject([{ run: 'a2' }]);
});
