// Contract 4, "Isolation": turns of attempts at one receiver.
import { afterEach, expect, jest, test } from '@jest/globals';
import { type HostTurnsOptions, HostTurns as Turns } from './host-turns.ts';

/** Turns without attempts beyond the share, unless a test sets them. */
class HostTurns extends Turns {
  constructor(options: Pick<HostTurnsOptions, 'open' | 'waitMs' | 'stillMs' | 'waiters'> & Partial<HostTurnsOptions>) {
    super({ proven: options.open, beyond: 0, quickMs: 60_000, ...options });
  }
}

/** Longer than any test, so no wait for a turn times out on a slow machine. */
const PATIENT_MS = 60_000;

afterEach(() => {
  jest.useRealTimers();
});

const given = async (limits: HostTurns, times: number, host = 'slow.test:80', project = 'demo') => {
  const turns = [];
  for (let i = 0; i < times; i += 1) turns.push(await limits.enter(project, host));
  return turns;
};

test('a hanging receiver gets only its share, and other receivers and projects get theirs', async () => {
  const limits = new HostTurns({ open: 2, waitMs: 20, stillMs: 20, waiters: 100 });
  const [first, second, third] = await given(limits, 3);
  expect([first, second, third].map((turn) => turn !== undefined)).toEqual([true, true, false]);
  expect(await limits.enter('demo', 'good.test:80')).toBeDefined();
  expect(await limits.enter('other', 'slow.test:80')).toBeDefined();
  first?.end();
  expect(await limits.enter('demo', 'slow.test:80')).toBeDefined();
});

test('no attempt waits for a turn at a receiver that is known to be slow', async () => {
  jest.useFakeTimers();
  const limits = new HostTurns({ open: 1, waitMs: 40, stillMs: 40, waiters: 100 });
  await given(limits, 1);
  jest.advanceTimersByTime(50);
  // The fake clock stands still, so a waiting attempt would never return.
  expect(await limits.enter('demo', 'slow.test:80')).toBeUndefined();
});

test('attempts at a quick receiver take turns in order', async () => {
  const limits = new HostTurns({ open: 2, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 300 });
  const order: number[] = [];
  let most = 0;
  let open = 0;
  await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      const turn = await limits.enter('demo', 'quick.test:80');
      order.push(index);
      open += 1;
      most = Math.max(most, open);
      await new Promise((resolve) => setImmediate(resolve));
      open -= 1;
      turn?.end();
    }),
  );
  expect(order).toEqual(Array.from({ length: 50 }, (_, index) => index));
  expect(most).toBe(2);
});

test('a turn that ends twice frees one slot, and an idle host is removed', async () => {
  const limits = new HostTurns({ open: 1, waitMs: 10, stillMs: 10, waiters: 100 });
  const [first] = await given(limits, 1);
  first?.end();
  first?.end();
  const [second] = await given(limits, 1);
  expect(await limits.enter('demo', 'slow.test:80')).toBeUndefined();
  second?.end();
  expect(limits.hosts).toBe(0);
});

test('attempts that wait for a receiver that begins to hang stop waiting soon', async () => {
  jest.useFakeTimers();
  const limits = new HostTurns({ open: 1, waitMs: 60_000, stillMs: 30, waiters: 100 });
  await given(limits, 1);
  const waiting = limits.enter('demo', 'slow.test:80');
  await jest.advanceTimersByTimeAsync(30);
  // The fake clock stands still from here.
  expect(await waiting).toBeUndefined();
});

test('the number of waiting attempts has a limit over all receivers', async () => {
  const limits = new HostTurns({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 1 });
  const [first] = await given(limits, 1);
  await given(limits, 1, 'other.test:80');
  const waiting = limits.enter('demo', 'slow.test:80');
  expect(await limits.enter('demo', 'other.test:80')).toBeUndefined();
  first?.end();
  expect(await waiting).toBeDefined();
});

test('a slot is passed to the attempt that waits longest, and to none if no attempt waits', async () => {
  const limits = new HostTurns({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 100 });
  const slot = { project: 'demo', runId: 'r', attempt: 1, host: 'slow.test:80', name: 's', passUntil: 0 };
  const [first] = await given(limits, 1);
  const waiting = [limits.enter('demo', 'slow.test:80'), limits.enter('demo', 'slow.test:80')];
  expect(first?.end(slot)).toBe(true);
  const second = await waiting[0];
  expect(second?.slot).toBe(slot);
  expect(second?.end()).toBe(true);
  const third = await waiting[1];
  expect(third?.slot).toBeUndefined();
  expect(third?.end(slot)).toBe(false);
});

test('an attempt with a slot from the store passes the slot to an attempt that waits here', async () => {
  const limits = new HostTurns({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 100 });
  const slot = { project: 'demo', runId: 'r', attempt: 1, host: 'slow.test:80', name: 's', passUntil: 0 };
  await given(limits, 1);
  const waiting = limits.enter('demo', 'slow.test:80');
  expect(limits.join('demo', 'slow.test:80').end(slot)).toBe(true);
  expect((await waiting)?.slot).toBe(slot);
});

test('after a turn is ceded to a woken delivery, no attempt gets a turn before that delivery ends', async () => {
  const limits = new HostTurns({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 100 });
  const [first] = await given(limits, 1);
  let granted = false;
  const waiting = limits.enter('demo', 'slow.test:80').then((turn) => {
    granted = true;
    return turn;
  });
  first?.cede();
  const woken = limits.join('demo', 'slow.test:80');
  await new Promise(setImmediate);
  expect(granted).toBe(false);
  woken.end();
  (await waiting)?.cede();
  expect(limits.hosts).toBe(0);
});

/** Makes attempts that end with a success (`well`) or a failure. */
async function show(limits: HostTurns, times: number, well: boolean, host = 'slow.test:80'): Promise<void> {
  for (let at = 0; at < times; at += 1) {
    const turn = await limits.enter('demo', host);
    turn?.report(well);
    turn?.end();
  }
}

/** Returns the number of attempts that a host may open now. */
async function roomAt(limits: HostTurns, host = 'slow.test:80'): Promise<number> {
  const turns = [];
  for (;;) {
    const turn = await Promise.race([limits.enter('demo', host), undefined]);
    if (!turn) break;
    turns.push(turn);
  }
  for (const turn of turns) turn.end();
  return turns.length;
}

const growing = { open: 2, proven: 5, beyond: 10, waitMs: 0, stillMs: 0, waiters: 0 };

test('each quick success lets a receiver have one more open attempt, and a failure resets it to its share', async () => {
  const limits = new HostTurns(growing);
  const kept = await limits.enter('demo', 'slow.test:80');
  const rooms: number[] = [];
  for (let at = 0; at < 5; at += 1) {
    rooms.push(await roomAt(limits));
    await show(limits, 1, true);
  }
  expect(rooms).toEqual([1, 2, 3, 4, 4]);
  expect(kept?.share).toBe(5);
  await show(limits, 1, false);
  expect([kept?.share, await roomAt(limits)]).toEqual([2, 1]);
});

test('a receiver with slow successes keeps its share, and an idle receiver starts again from its share', async () => {
  const slow = new HostTurns({ ...growing, quickMs: -1 });
  const kept = await slow.enter('demo', 'slow.test:80');
  await show(slow, 3, true);
  expect(kept?.share).toBe(2);
  const quick = new HostTurns(growing);
  await show(quick, 3, true);
  expect(await roomAt(quick)).toBe(2);
});

test('attempts beyond the shares have a limit over all receivers', async () => {
  const limits = new HostTurns({ ...growing, beyond: 3 });
  const turns = [];
  for (const host of ['a.test:80', 'b.test:80']) {
    turns.push(await limits.enter('demo', host));
    await show(limits, 3, true, host);
    for (let at = 0; at < 4; at += 1) turns.push(await Promise.race([limits.enter('demo', host), undefined]));
  }
  expect(turns.filter((turn) => turn !== undefined)).toHaveLength(2 * 2 + 3);
  for (const turn of turns) turn?.end();
  expect(limits.hosts).toBe(0);
});

test('a receiver whose last turn was ceded is removed when its last waiting attempt times out', async () => {
  jest.useFakeTimers();
  const limits = new HostTurns({ open: 1, waitMs: 40, stillMs: 40, waiters: 100 });
  const [first] = await given(limits, 1);
  const waiting = limits.enter('demo', 'slow.test:80');
  first?.cede();
  jest.advanceTimersByTime(50);
  expect(await waiting).toBeUndefined();
  expect(limits.hosts).toBe(0);
});
