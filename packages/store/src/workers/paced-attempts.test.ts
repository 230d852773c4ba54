import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { append, call, RealStore, succeed, takeOne } from '../journeys/real-store.ts';

let store: RealStore;
beforeAll(async () => {
  store = await RealStore.open();
});
afterAll(() => store.close());

test.each(['lost', 'ended'] as const)('a worker forgets a released paced attempt (%s)', async (how) => {
  const project = `paced-${how}`;
  const gateway = store.gateway(`g-${how}`);
  const worker = await store.worker(`w${how}`, project);
  const { accepted } = gateway.acceptor.accept(call(project, { paced: true }), 'items');
  await accepted;
  const run = await takeOne(worker, project);
  expect(worker.pacedAttempts).toBe(1);
  if (how === 'lost') {
    await store.admin.flushall();
    expect(await append(worker, run, 1, 'a')).toEqual({ state: 'lost' });
  } else {
    expect(await append(worker, run, 1, 'a')).toMatchObject({ state: 'ok' });
    expect(await succeed(worker, run, 1)).toEqual({ state: 'ended' });
  }
  worker.release(run);
  expect(worker.pacedAttempts).toBe(0);
});
