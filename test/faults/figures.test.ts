import { expect, test } from '@jest/globals';
import { type Episode, HEADINGS, lineOf } from './figures.ts';
import type { Seen } from './history.ts';

/** Seconds from the start of the episode to its full recovery. */
const episode = (from: number, overAt: number, to: number): Episode => ({
  name: 'something',
  from: from * 1000,
  overAt: overAt * 1000,
  goodAt: (overAt + 1) * 1000,
  wholeAt: to * 1000,
  to: to * 1000,
});
const call = (tag: string, began: number, ended: number): Seen => ({
  kind: 'call',
  tag,
  is: 'ok',
  beganAt: began * 1000,
  endedAt: ended * 1000,
  stalledMs: (ended - began) * 1000,
});
const episodes = [episode(0, 10, 12), episode(14, 24, 27), episode(28, 88, 90)];
const [before, own, after] = episodes;

/** Returns the figure under a heading, for the episode in the middle. */
function figure(heading: (typeof HEADINGS)[number], ...seen: Seen[]): string | undefined {
  return lineOf(own as Episode, { before, after }, { seen }, [])[HEADINGS.indexOf(heading)];
}

test('a fault ends before the recovery of calls, and calls recover before all parts do', () => {
  expect([figure('recovery s'), figure('whole s')]).toEqual(['1.0', '3.0']);
});

test('a call that an earlier or later fault stalls does not count for this fault', () => {
  const held = call('held', 15, 20);
  expect(figure('stall s', held)).toBe('5.0');
  expect(figure('stall s', held, call('by the one before', 5, 16), call('by the one after', 26, 88))).toBe('5.0');
});

test('a call that began during the fault counts for this fault, whatever its length', () => {
  expect(figure('stall s', call('for ever', 20, 60))).toBe('40.0');
});
