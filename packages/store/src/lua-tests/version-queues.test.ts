// Contract 7, "Versions": the queues of an app's deployed versions, case by case.
import { expect, test } from '@jest/globals';
import { LEASE, type Reply, type SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)];
const deployed = { deployed: true } as const;
const queueOf = (version: string): string => `app@${version}`;

/** Activates a version as the last report of a roll-out does. */
async function activate(version: string): Promise<void> {
  await store.run('version-deploy', 'app', version, version, 1, '', 'ada', 'activate', 600_000);
  const number = await store.client.hget(`${store.prefix}deployment:app`, 'number');
  expect(await store.run('version-report', 'app', version, number as string, 'w', 1, 'ready', '', 0, '', '0 0')).toBe(
    'ended',
  );
}

const announce = (app: object): Promise<number> =>
  store.client.hset(`${store.prefix}apps`, 'app', JSON.stringify({ app: 'app', state: 'ready', ...app }));

const renew = (worker: string, ...served: string[]): Promise<Reply> =>
  store.run('renew', worker, LEASE, served.length, ...served);

const versionOf = async (id: string): Promise<string | undefined> => (await store.record(id)).v;

test('a run names the version that was active at its acceptance, and only this version takes the run', async () => {
  await activate(A);
  expect(await store.accept('a', deployed)).toBe('accepted');
  await activate(B);
  expect(await store.accept('b', deployed)).toBe('accepted');
  expect([await versionOf('a'), await versionOf('b')]).toEqual([A, B]);
  expect(await store.take('w', 1, 5, queueOf(B))).toEqual(['b']);
  expect(await store.take('w', 2, 5, queueOf(A))).toEqual(['a']);
});

test('a repeated take names the queue of each run', async () => {
  await activate(A);
  await store.accept('a', deployed);
  await activate(B);
  await store.accept('b', deployed);
  const asked = ['w', 1, LEASE, 1024, queueOf(B), 2, B, queueOf(A), 2, A] as const;
  const [, , ...runs] = (await store.run('take', ...asked)) as Reply[];
  const [, , ...repeated] = (await store.run('take', ...asked)) as Reply[];
  const placesOf = (values: Reply[]) => [values[0], values[4], values[5], values[9]];
  expect(placesOf(runs)).toEqual(['b', 1, 'a', 2]);
  expect(placesOf(repeated)).toEqual(['b', 1, 'a', 2]);
});

test('an app from a folder has one queue, whatever versions are deployed under its name', async () => {
  await activate(A);
  await store.accept('a');
  expect(await versionOf('a')).toBeUndefined();
  expect(await store.take('w', 1, 5)).toEqual(['a']);
});

test('calls before the first activation wait in the queue of the app, and the first version takes them', async () => {
  await announce(deployed);
  await store.accept('a', deployed);
  expect(await versionOf('a')).toBeUndefined();
  await activate(A);
  expect(await versionOf('a')).toBe(A);
  expect(await store.take('w', 1, 5, queueOf(A))).toEqual(['a']);
});

test('the active version takes the runs of a version that no worker has any longer', async () => {
  await announce(deployed);
  await activate(A);
  await renew('w', 'app', queueOf(A));
  await store.accept('a', deployed);
  await activate(B);
  await renew('w', 'app', queueOf(A), queueOf(B));
  await store.pass(4_000);
  expect(await versionOf('a')).toBe(A);
  // The worker that had the version dies. Another worker has the active version.
  await store.pass(LEASE + 1);
  await renew('x', 'app', queueOf(B));
  expect(await versionOf('a')).toBe(B);
  expect(await store.take('x', 1, 5, queueOf(B))).toEqual(['a']);
});

test('runs of a deployed version go to the queue of the app when a folder holds the app again', async () => {
  await announce(deployed);
  await activate(A);
  await store.accept('a', deployed);
  await announce({ deployed: false });
  await store.reap();
  await store.reap();
  expect(await store.take('w', 1, 5)).toEqual(['a']);
});

test('runs of the app go to the active version when the folder is gone', async () => {
  await activate(A);
  await store.accept('a');
  await announce(deployed);
  await store.reap();
  await store.reap();
  expect(await store.take('w', 1, 5, queueOf(A))).toEqual(['a']);
});

test('the queue limit counts the runs of the version before', async () => {
  await activate(A);
  for (const id of ['a', 'b']) await store.accept(id, { ...deployed, limit: 3 });
  await activate(B);
  expect(await store.accept('c', { ...deployed, limit: 3 })).toBe('accepted');
  expect(await store.accept('d', { ...deployed, limit: 3 })).toBe('overloaded');
});

test('a queued run of an old version can be cancelled, and its queue is then empty', async () => {
  await activate(A);
  await store.accept('a', deployed);
  await activate(B);
  await store.cancel('a');
  expect(await store.client.exists(`${store.prefix}queue:${queueOf(A)}`)).toBe(0);
});

test('a requeued run goes back to the queue of its version', async () => {
  await activate(A);
  await store.accept('a', deployed);
  const [, , , , number] = (await store.run('take', 'w', 1, LEASE, 1024, queueOf(A), 1, A)) as Reply[];
  expect(number).toBe('1');
  expect((await store.end('a', 'w:1', 0, 1))[0]).toBe('requeued');
  expect(await store.take('w', 2, 1, queueOf(A))).toEqual(['a']);
});

test('queued runs of a deleted app end as not_found, and a new deployment takes new runs', async () => {
  await announce(deployed);
  await activate(A);
  await renew('w', 'app', queueOf(A));
  await store.accept('a', deployed);
  expect(await store.run('app-delete', 'app')).toBe(1);
  await store.reap();
  expect((await store.record('a')).state).toBe('queued');
  // The worker withdraws the app, and its lease for the app ends.
  await store.client.hdel(`${store.prefix}apps`, 'app');
  await store.pass(LEASE + 1);
  await store.reap();
  expect(await store.record('a')).toMatchObject({ state: 'failed', error: expect.stringContaining('not_found') });
  await activate(B);
  await store.accept('b', deployed);
  await store.reap();
  expect(await store.take('w', 1, 5, queueOf(B))).toEqual(['b']);
});

test('nothing remains of an old version whose queue is empty', async () => {
  await announce(deployed);
  await activate(A);
  await store.accept('a', deployed);
  await activate(B);
  await store.take('w', 1, 1, queueOf(A));
  await store.end('a', 'w:1');
  await store.run('take', 'w', 2, LEASE, 1024, queueOf(A), 0, '');
  await store.reap();
  await store.reap();
  expect(await store.client.hkeys(`${store.prefix}queues`)).toEqual([]);
  expect(await store.client.hget(`${store.prefix}deployment:app`, 'before')).toBeNull();
  expect(await store.client.hget(`${store.prefix}took:w`, `waits ${queueOf(A)}`)).toBeNull();
});
