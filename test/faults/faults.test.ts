// The short form of the fault suite: each fault occurs once, one after the other, under every kind of call. Afterwards each
// accepted run has one end, each reader has every item once, each due webhook has its delivery, and no process or key stays. `npm run soak` is the
// long form.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { faultsOf } from './checker.ts';
import { episode } from './episode.ts';
import { faults, restartAll } from './faults.ts';
import { Place, SHORT_TIMES } from './place.ts';

// A limit against hanging only: the last test waits for deliveries and looks up every run.
jest.setTimeout(400_000);

const BETWEEN_MS = 100;

let place: Place;

beforeAll(async () => {
  place = await Place.open({ env: SHORT_TIMES });
});
afterAll(() => place?.close());

const short = Object.keys(faults).filter((name) => !faults[name]?.long);

test.each(short)('%s: the service recovers by itself', async (name) => {
  await episode(place, name, { pick: ([first]) => first as never, long: false });
  await sleep(BETWEEN_MS);
});

test('a rolling restart of all services fails no call', async () => {
  await restartAll(place);
  await place.recovered();
});

test('every accepted run has one end, every stream is whole, every due webhook came, and no process or key stays', async () => {
  const history = await place.settle();
  expect(faultsOf(history).map(({ is, text }) => `${is}: ${text}`)).toEqual([]);
  expect(history.seen.filter(({ is }) => is === 'ok').length).toBeGreaterThan(history.seen.length / 2);
});
