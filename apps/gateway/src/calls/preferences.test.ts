import { expect, test } from '@jest/globals';
import { preferences } from './preferences.ts';

test.each([
  ['respond-async', true, undefined],
  ['Respond-Async; x=1, wait=10', true, 10],
  ['handling=lenient, respond-async', true, undefined],
  ['wait=10;respond-async', false, 10],
  ['respond-async=""', true, undefined],
  ['respond-async=false', false, undefined],
  ['no-respond-async', false, undefined],
  ['respond-asynchronously', false, undefined],
  ['wait=0', false, 0],
  ['WAIT = 5', false, 5],
  ['wait="5"', false, 5],
  ['wait="\\5"', false, 5],
  ['priority=5, wait=7, wait=9', false, 7],
  ['foo="a, wait=3", wait=4', false, 4],
  ['foo="\\", wait=3", wait=4', false, 4],
  ['foo; bar="x, wait=3", wait=4', false, 4],
  [',, wait=2 ,', false, 2],
  ['wait', false, undefined],
  ['wait=', false, undefined],
  ['wait=-1', false, undefined],
  ['wait=1.5', false, undefined],
  ['wait=1e3', false, undefined],
  ['wait=1234567890', false, undefined],
  ['wait=soon, wait=3', false, undefined],
  ['wait=3 s', false, undefined],
  ['foo="open, wait=3', false, undefined],
  ['"', false, undefined],
  ['', false, undefined],
])('%j: respond-async %p, wait %p', (header, respondAsync, waitS) => {
  expect(preferences(header)).toEqual({ respondAsync, ...(waitS !== undefined && { waitS }) });
});

test('a header of the largest size is read at once, with any characters', () => {
  for (const piece of ['"', '\\"', ' ', '\t=', 'a=', 'a ', ' ;', ',"', '="'])
    expect(preferences(piece.repeat(16_000 / piece.length)).respondAsync).toBe(false);
});
