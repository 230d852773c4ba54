// Contract 4, "Isolation": circuits and probes over all dispatchers, as tables, with a clock that the test moves.
import { expect, test } from '@jest/globals';
import { LEASE, PROBE, type Receivers, steppedReceivers, type Woken } from '../lua-tests/stepped-receivers.ts';

let receivers: Receivers;
steppedReceivers((fresh) => {
  receivers = fresh;
});

type Outcome = 'good' | 'bad' | 'none';
/** Outcomes in order, and the answer to the next attempt. */
const table: [string, [Outcome, number][], string][] = [
  ['19 failures in a row', [['bad', 19]], 'open'],
  ['20 failures in a row', [['bad', 20]], 'parked circuit_open'],
  [
    '38 failures with a success in the middle',
    [
      ['bad', 19],
      ['good', 1],
      ['bad', 19],
    ],
    'open',
  ],
  [
    '20 failures with attempts without a meaning between them',
    [
      ['bad', 19],
      ['none', 5],
      ['bad', 1],
    ],
    'parked circuit_open',
  ],
  [
    'failures in half of the last hundred',
    [
      ...repeat(10, [
        ['bad', 5],
        ['good', 5],
      ]),
    ],
    'open',
  ],
  [
    'failures in half of the last hundred, with a failure at the end',
    [
      ['good', 1],
      ['bad', 1],
      ...repeat(49, [
        ['good', 1],
        ['bad', 1],
      ]),
      ['good', 1],
      ['bad', 1],
    ],
    'parked circuit_open',
  ],
  [
    'failures in less than half of the last hundred',
    [
      ...repeat(34, [
        ['bad', 1],
        ['good', 2],
      ]),
    ],
    'open',
  ],
  [
    'fewer than a hundred attempts with many failures',
    [
      ['bad', 19],
      ['good', 1],
      ['bad', 19],
      ['good', 1],
    ],
    'open',
  ],
];

function repeat(times: number, what: [Outcome, number][]): [Outcome, number][] {
  return Array.from({ length: times }, () => what).flat();
}

test.each(table)('the circuit after %s', async (_name, outcomes, expected) => {
  for (const [outcome, count] of outcomes) {
    for (let at = 0; at < count; at += 1) await receivers.attempt(outcome);
  }
  const met = await receivers.enter('a9');
  expect(met.startsWith('parked') ? met : 'open').toBe(expected);
});

test('an open circuit of one project does not affect another project', async () => {
  await receivers.attempts(20, 'bad');
  expect(await receivers.enter('a1')).toBe('parked circuit_open');
  expect(await receivers.enter('b1')).toMatch(/b1/);
});

test('an open circuit has one probe at a time, after pauses that double up to sixty times the first pause', async () => {
  await receivers.attempts(20, 'bad');
  for (const run of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9']) await receivers.enter(run);
  expect((await receivers.look()).woken).toEqual([]);
  for (let pause = PROBE, probes = 0; probes < 8; pause = Math.min(pause * 2, PROBE * 60), probes += 1) {
    receivers.store.advance(pause - 1);
    expect((await receivers.look()).woken).toEqual([]);
    receivers.store.advance(1);
    const { woken } = await receivers.look();
    expect(woken).toHaveLength(1);
    expect((await receivers.look()).woken).toEqual([]);
    expect(await receivers.enter('az')).toBe('parked circuit_open');
    expect(await receivers.leave((woken[0] as Woken).slot, 'bad')).toEqual([]);
  }
});

test('a probe without a meaning is followed by another probe after the same pause', async () => {
  await receivers.attempts(20, 'bad');
  await receivers.enter('a1');
  await receivers.enter('a2');
  receivers.store.advance(PROBE);
  const [probe] = (await receivers.look()).woken;
  await receivers.leave((probe as Woken).slot, 'none');
  receivers.store.advance(PROBE);
  expect((await receivers.look()).woken).toHaveLength(1);
});

test('a probe of a dead dispatcher is followed by another probe', async () => {
  await receivers.attempts(20, 'bad');
  await receivers.enter('a1');
  await receivers.enter('a2');
  receivers.store.advance(PROBE);
  expect((await receivers.look()).woken).toHaveLength(1);
  receivers.store.advance(LEASE + 1000);
  const { woken, lapsed } = await receivers.look();
  expect([woken.length, lapsed.length]).toEqual([1, 1]);
});

test('without parked deliveries, the first delivery after the pause is the probe', async () => {
  await receivers.attempts(20, 'bad');
  expect(await receivers.enter('a1')).toBe('parked circuit_open');
  receivers.store.advance(PROBE);
  const probe = await receivers.enter('a2');
  expect(probe).toMatch(/a2/);
  expect(await receivers.enter('a3')).toBe('parked circuit_open');
  expect((await receivers.look()).woken).toEqual([]);
});

test('the first success closes the circuit, and parked deliveries are sent without a flood', async () => {
  receivers.perProject = 16;
  receivers.perHost = 64;
  await receivers.attempts(20, 'bad');
  for (let at = 0; at < 200; at += 1) await receivers.enter(`a-${at}`);
  receivers.store.advance(PROBE);
  const [probe] = (await receivers.look()).woken;
  let open = await receivers.leave((probe as Woken).slot, 'good');
  const widths: number[] = [open.length];
  let delivered = 1;
  while (open.length > 0) {
    const next: Woken[] = [];
    for (const { slot } of open) {
      next.push(...(await receivers.leave(slot, 'good')));
      delivered += 1;
    }
    open = next;
    widths.push(open.length);
  }
  expect(delivered).toBe(200);
  // Two at first, never more than twice the previous number, never more than the share.
  expect(widths[0]).toBe(2);
  expect(Math.max(...widths)).toBe(16);
  widths.slice(1).forEach((width, at) => {
    expect(width).toBeLessThanOrEqual(2 * (widths[at] as number));
  });
  expect(await receivers.parked()).toBe(0);
});

test('a receiver that fails again while its parked deliveries are sent gets fewer attempts at a time', async () => {
  receivers.perProject = 8;
  await receivers.attempts(20, 'bad');
  for (let at = 0; at < 50; at += 1) await receivers.enter(`a-${at}`);
  receivers.store.advance(PROBE);
  const [probe] = (await receivers.look()).woken;
  const open = await receivers.leave((probe as Woken).slot, 'good');
  expect(open).toHaveLength(2);
  expect(await receivers.leave((open[0] as Woken).slot, 'bad')).toEqual([]);
  expect(await receivers.leave((open[1] as Woken).slot, 'bad')).toHaveLength(1);
});
