// Kill anything, in its short form: everything that can go wrong goes wrong once, one thing after the other, under every kind of call. Whatever
// happens, what was accepted has one end, every reader each item once, every due webhook its delivery, and nothing is left. `npm run soak` is the
// long form.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { faultsOf } from './checker.ts';
import { episode } from './episode.ts';
import { faults, restartAll } from './faults.ts';
import { Place, SHORT_TIMES } from './place.ts';

// Against hanging only: the last one waits for deliveries and looks up every run.
jest.setTimeout(400_000);

const BETWEEN_MS = 100;

let place: Place;

beforeAll(async () => {
  place = await Place.open({ env: SHORT_TIMES });
});
afterAll(() => place?.close());

const short = Object.keys(faults).filter((name) => !faults[name]?.long);

test.each(short)('%s: service returns by itself', async (name) => {
  await episode(place, name, { pick: ([first]) => first as never, long: false });
  await sleep(BETWEEN_MS);
});

test('all are restarted, one after the other: not one call fails', async () => {
  await restartAll(place);
  await place.recovered();
});

test('all that was accepted has one end, all that was read is whole, all that is due has come, and nothing is left', async () => {
  const history = await place.settle();
  expect(faultsOf(history).map(({ is, text }) => `${is}: ${text}`)).toEqual([]);
  expect(history.seen.filter(({ is }) => is === 'ok').length).toBeGreaterThan(history.seen.length / 2);
});
