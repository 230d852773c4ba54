import { expect, test } from '@jest/globals';
import { Lane } from './lane.ts';

const MIB = 1024 * 1024;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A lane to a Redis that answers on command. */
function laneOf(limitMs = 60_000) {
  const lane = new Lane(limitMs);
  const sent: number[] = [];
  const answers = new Map<number, (value: string) => void>();
  const call = (id: number, bytes: number): Promise<string> =>
    lane.call(bytes, () => {
      sent.push(id);
      return new Promise((resolve) => answers.set(id, resolve));
    });
  return { call, sent, answer: (id: number): void => answers.get(id)?.(`answer ${id}`) };
}

test('large calls wait for each other in order, and small calls do not wait', async () => {
  const { call, sent, answer } = laneOf();
  const calls = [call(1, 30 * MIB), call(2, 30 * MIB), call(3, 3 * MIB), call(4, 4 * MIB), call(5, 1000)];
  await turn();
  expect(sent).toEqual([5, 1]);
  answer(1);
  await turn();
  expect(sent).toEqual([5, 1, 2]);
  answer(2);
  await turn();
  expect(sent).toEqual([5, 1, 2, 3, 4]);
  for (const id of [3, 4, 5]) answer(id);
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5].map((id) => `answer ${id}`));
});

test('a call that was not answered in time keeps its room until the answer, so its repeat must wait', async () => {
  const { call, sent, answer } = laneOf(5);
  await expect(call(1, 9 * MIB)).rejects.toMatchObject({ code: 'unavailable' });
  const again = call(2, 9 * MIB);
  await turn();
  expect(sent).toEqual([1]);
  answer(1);
  await turn();
  expect(sent).toEqual([1, 2]);
  answer(2);
  expect(await again).toBe('answer 2');
});

test('a call that Redis refuses releases its room', async () => {
  const lane = new Lane(60_000);
  const refused = lane.call(9 * MIB, () => Promise.reject(new Error('OOM command not allowed')));
  await expect(refused).rejects.toMatchObject({ code: 'overloaded' });
  expect(await lane.call(9 * MIB, () => Promise.resolve('taken'))).toBe('taken');
});

test('a call whose wait for room is over is refused, and not sent later', async () => {
  const lane = new Lane(60_000, 5);
  const held = Promise.withResolvers<string>();
  const first = lane.call(9 * MIB, () => held.promise);
  const sent: number[] = [];
  const late = lane.call(MIB, async () => void sent.push(2));
  await expect(late).rejects.toMatchObject({ code: 'unavailable' });
  held.resolve('answered');
  expect(await first).toBe('answered');
  await lane.call(MIB, async () => void sent.push(3));
  expect(sent).toEqual([3]);
});
