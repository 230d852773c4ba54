// Contract 4, "Isolation": a backlog does not delay fresh deliveries, and projects take turns.
import { expect, test } from '@jest/globals';
import { type Leave, Places } from './places.ts';

test('a backlog gets half of the places, and fresh deliveries come first', async () => {
  const places = new Places(4);
  const order: string[] = [];
  const leaves: Leave[] = [];
  const take = (share: 'fresh' | 'backlog', name: string) =>
    void places.take(share, 'demo').then((leave) => {
      order.push(name);
      if (leave) leaves.push(leave);
    });
  for (const name of ['old 1', 'old 2', 'old 3', 'old 4']) take('backlog', name);
  await new Promise(setImmediate);
  expect(order).toEqual(['old 1', 'old 2']);
  for (const name of ['new 1', 'new 2', 'new 3']) take('fresh', name);
  await new Promise(setImmediate);
  expect(order.slice(2)).toEqual(['new 1', 'new 2']);
  leaves[0]?.();
  leaves[0]?.();
  await new Promise(setImmediate);
  expect(order.slice(4)).toEqual(['new 3']);
  leaves[2]?.();
  await new Promise(setImmediate);
  expect(order.slice(5)).toEqual(['old 3']);
  expect(places.taken).toBe(4);
});

test('closed places return nothing to waiting and new calls, and `empty` resolves after the last release', async () => {
  const places = new Places(1);
  const leave = await places.take('fresh', 'demo');
  const waiting = places.take('fresh', 'demo');
  places.close();
  expect(await waiting).toBeUndefined();
  expect(await places.take('backlog', 'demo')).toBeUndefined();
  let empty = false;
  const emptied = places.empty().then(() => {
    empty = true;
  });
  await new Promise(setImmediate);
  expect(empty).toBe(false);
  leave?.();
  await emptied;
  await places.empty();
});

test('projects take turns for places, even if many deliveries of one project wait', async () => {
  const places = new Places(1);
  const order: string[] = [];
  const first = await places.take('fresh', 'busy');
  const taken = ['busy', 'busy', 'busy', 'other', 'third', 'other'].map(async (project) => {
    const leave = await places.take('fresh', project);
    order.push(project);
    leave?.();
  });
  first?.();
  await Promise.all(taken);
  expect(order).toEqual(['busy', 'other', 'third', 'busy', 'other', 'busy']);
});
