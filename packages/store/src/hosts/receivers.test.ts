// Contract 5, "Deliveries": a project sees the circuits and parked deliveries of its own receivers.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { HostStore, Receivers, type Slot } from '../index.ts';
import { RealStore } from '../journeys/real-store.ts';

const HOST = 'receiver.example.com:443';
const LIMITS = { leaseMs: 60_000, perProject: 2, perHost: 64, project: 192, probeMs: 60_000, commandMs: 600_000 };
let store: RealStore;
let hosts: HostStore;
let receivers: Receivers;
beforeEach(async () => {
  store = await RealStore.open();
  hosts = new HostStore(store.admin, LIMITS);
  receivers = new Receivers(store.admin, 600_000);
});
afterEach(() => store.close());

const acquire = (project: string, runId: string) => hosts.acquire({ project, runId, attempt: 1 }, HOST, 'normal', 2);
async function opened(project: string, runId: string): Promise<Slot> {
  const answer = await acquire(project, runId);
  if (answer.state !== 'open') throw new Error(answer.reason);
  return answer.slot;
}

test('a parked delivery and an open attempt appear, for their project alone', async () => {
  // A receiver without a success may have one open attempt.
  const slot = await opened('one', 'r1');
  expect(await acquire('one', 'r2')).toMatchObject({ state: 'parked' });
  const [seen, ...more] = await receivers.troubled('one');
  expect(more).toEqual([]);
  expect(seen).toMatchObject({ host: HOST, circuit: 'closed', openAttempts: 1, parked: 1, failuresInARow: 0 });
  expect(seen?.parkedSince).toBeGreaterThan(Date.now() - 600_000);
  expect(await receivers.troubled('two')).toEqual([]);
  await hosts.release(slot, 'good', 2);
});

test('an open circuit shows its next probe, and a receiver without trouble is not listed', async () => {
  for (let n = 0; n < 20; n++) await hosts.release(await opened('one', `r${n}`), 'bad', 2);
  const [seen] = await receivers.troubled('one');
  expect(seen).toMatchObject({ host: HOST, circuit: 'open', openAttempts: 0, parked: 0 });
  expect(seen?.probeAt).toBeGreaterThan(Date.now());
  expect(await receivers.one('one', HOST)).toEqual(seen);
  expect(await receivers.one('two', HOST)).toEqual({
    ...{ host: HOST, circuit: 'closed', failuresInARow: 0, openAttempts: 0, parked: 0 },
  });
  await hosts.release(await opened('two', 'quiet'), 'good', 2);
  expect(await receivers.troubled('two')).toEqual([]);
});
