// webhooks.md "Isolation": how many attempts one receiver may hold.
import { afterEach, expect, jest, test } from '@jest/globals';
import { type HostLimitOptions, HostLimits as Limits } from './host-limits.ts';

/** Where a test says nothing of it, nobody gets more than its share. */
class HostLimits extends Limits {
  constructor(options: Pick<HostLimitOptions, 'open' | 'waitMs' | 'stillMs' | 'waiters'> & Partial<HostLimitOptions>) {
    super({ proven: options.open, beyond: 0, quickMs: 60_000, ...options });
  }
}

/** Turns that come are not waited for in vain, however busy the machine is. */
const PATIENT_MS = 60_000;

afterEach(() => {
  jest.useRealTimers();
});

const given = async (limits: HostLimits, times: number, host = 'slow.test:80', project = 'demo') => {
  const turns = [];
  for (let i = 0; i < times; i += 1) turns.push(await limits.enter(project, host));
  return turns;
};

test('a receiver that hangs gets its slots and no more, others theirs', async () => {
  const limits = new HostLimits({ open: 2, waitMs: 20, stillMs: 20, waiters: 100 });
  const [first, second, third] = await given(limits, 3);
  expect([first, second, third].map((turn) => turn !== undefined)).toEqual([true, true, false]);
  expect(await limits.enter('demo', 'good.test:80')).toBeDefined();
  expect(await limits.enter('other', 'slow.test:80')).toBeDefined();
  first?.end();
  expect(await limits.enter('demo', 'slow.test:80')).toBeDefined();
});

test('for a receiver known to be slow, nobody is let wait', async () => {
  jest.useFakeTimers();
  const limits = new HostLimits({ open: 1, waitMs: 40, stillMs: 40, waiters: 100 });
  await given(limits, 1);
  jest.advanceTimersByTime(50);
  // No time passes meanwhile.
  expect(await limits.enter('demo', 'slow.test:80')).toBeUndefined();
});

test('for a receiver that is quick, attempts take turns in order', async () => {
  const limits = new HostLimits({ open: 2, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 300 });
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

test('leaving twice frees one slot, and a host with nothing open is forgotten', async () => {
  const limits = new HostLimits({ open: 1, waitMs: 10, stillMs: 10, waiters: 100 });
  const [first] = await given(limits, 1);
  first?.end();
  first?.end();
  const [second] = await given(limits, 1);
  expect(await limits.enter('demo', 'slow.test:80')).toBeUndefined();
  second?.end();
  expect(limits.hosts).toBe(0);
});

test('a receiver that begins to hang frees the places of those that wait for it soon', async () => {
  jest.useFakeTimers();
  const limits = new HostLimits({ open: 1, waitMs: 60_000, stillMs: 30, waiters: 100 });
  await given(limits, 1);
  const waiting = limits.enter('demo', 'slow.test:80');
  await jest.advanceTimersByTimeAsync(30);
  // No more time passes.
  expect(await waiting).toBeUndefined();
});

test('no more wait than are allowed to, over all receivers', async () => {
  const limits = new HostLimits({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 1 });
  const [first] = await given(limits, 1);
  await given(limits, 1, 'other.test:80');
  const waiting = limits.enter('demo', 'slow.test:80');
  expect(await limits.enter('demo', 'other.test:80')).toBeUndefined();
  first?.end();
  expect(await waiting).toBeDefined();
});

test('a slot is passed on to who waits longest, and to nobody where nobody waits', async () => {
  const limits = new HostLimits({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 100 });
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

test('who comes with a slot from elsewhere passes it on to who waits here', async () => {
  const limits = new HostLimits({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 100 });
  const slot = { project: 'demo', runId: 'r', attempt: 1, host: 'slow.test:80', name: 's', passUntil: 0 };
  await given(limits, 1);
  const waiting = limits.enter('demo', 'slow.test:80');
  expect(limits.join('demo', 'slow.test:80').end(slot)).toBe(true);
  expect((await waiting)?.slot).toBe(slot);
});

test('a turn that is ceded to a woken delivery lets nobody else in until that one ends', async () => {
  const limits = new HostLimits({ open: 1, waitMs: PATIENT_MS, stillMs: PATIENT_MS, waiters: 100 });
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

/** Attempts that end, each with what it has shown. */
async function show(limits: HostLimits, times: number, well: boolean, host = 'slow.test:80'): Promise<void> {
  for (let at = 0; at < times; at += 1) {
    const turn = await limits.enter('demo', host);
    turn?.shown(well);
    turn?.end();
  }
}

/** How many attempts a host may have open now. */
async function roomAt(limits: HostLimits, host = 'slow.test:80'): Promise<number> {
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

test('a receiver that answers well may have one more open with each answer, and its share again after the first failure', async () => {
  const limits = new HostLimits(growing);
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

test('a receiver that answers well but slowly keeps its share, and one that nothing is open to begins anew', async () => {
  const slow = new HostLimits({ ...growing, quickMs: -1 });
  const kept = await slow.enter('demo', 'slow.test:80');
  await show(slow, 3, true);
  expect(kept?.share).toBe(2);
  const quick = new HostLimits(growing);
  await show(quick, 3, true);
  expect(await roomAt(quick)).toBe(2);
});

test('beyond their shares receivers have no more open together than may be lost when they begin to hang', async () => {
  const limits = new HostLimits({ ...growing, beyond: 3 });
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

test('a receiver whose last turn was ceded is forgotten when its last waiter times out', async () => {
  jest.useFakeTimers();
  const limits = new HostLimits({ open: 1, waitMs: 40, stillMs: 40, waiters: 100 });
  const [first] = await given(limits, 1);
  const waiting = limits.enter('demo', 'slow.test:80');
  first?.cede();
  jest.advanceTimersByTime(50);
  expect(await waiting).toBeUndefined();
  expect(limits.hosts).toBe(0);
});
