// Contract 7, "Versions": a roll-out that moves new calls in steps, and its undoing, with the clock of the test.
import { expect, test } from '@jest/globals';
import { type Reply, type SteppedStore, steppedStores } from './stepped-store.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)];
const DURATION = 50_000;
let reports = 0;

const deploy = (version: string) =>
  store.run('version-deploy', 'app', version, version, 1, '', 'ada', 'activate', 600_000);
const field = (name: string): Promise<string | null> => store.client.hget(`${store.prefix}deployment:app`, name);
const versionField = (version: string, name: string) =>
  store.client.hget(`${store.prefix}version:app:${version}`, name);

async function report(version: string, { worker = 'w', duration = DURATION, abort = '', counts = '0 0' } = {}) {
  const number = (await field('number')) ?? '';
  return store.run('version-report', 'app', version, number, worker, ++reports, 'ready', '', duration, abort, counts);
}

/** Makes a version active. */
async function activate(version: string): Promise<void> {
  await deploy(version);
  expect(await report(version, { duration: 0 })).toBe('ended');
}

/** Begins the steps of a version beside the active version. */
async function stepping(abort = ''): Promise<void> {
  await activate(A);
  await store.client.zadd(`${store.prefix}serving:app`, store.now() + 10_000_000, 'w');
  await deploy(B);
  expect(await report(B, { abort })).toBe('current');
}

/** A gateway's round. Returns the number of roll-outs that it has ended. */
async function round(): Promise<Reply> {
  const [ended] = (await store.run('roll-outs', 100)) as Reply[];
  return ended as Reply;
}

let calls = 0;
/** Accepts 20 calls. Returns the number of calls that the new version got. */
async function shareOfTwenty(): Promise<number> {
  let got = 0;
  for (let n = 0; n < 20; n++) {
    const id = `r${++calls}`;
    await store.accept(id, { deployed: true, limit: 1000 });
    if ((await store.record(id)).v === B) got++;
  }
  return got;
}

test('new calls move in five equal steps, and then the version is active', async () => {
  await stepping();
  for (const share of [4, 8, 12, 16, 20]) {
    expect(await shareOfTwenty()).toBe(share);
    expect(await field('active')).toBe(A);
    store.advance(DURATION / 5);
    expect(await round()).toBe(share === 20 ? 1 : 0);
  }
  expect([await field('active'), await field('target'), await field('share')]).toEqual([B, null, null]);
  expect([await versionField(A, 'state'), await versionField(B, 'state')]).toEqual(['retired', 'active']);
  expect(await shareOfTwenty()).toBe(20);
  const lines = await store.client.lrange(`${store.prefix}build-log:app:${B}`, 0, -1);
  expect(lines.map((line) => (JSON.parse(line) as { text: string }).text)).toEqual(
    [20, 40, 60, 80, 100].map((share) => `${share} % of new calls use this version`),
  );
});

test('a repeated accept does not count as a call', async () => {
  await stepping();
  await store.accept('once', { deployed: true });
  await store.accept('once', { deployed: true });
  expect(await field('calls')).toBe('1');
});

test('too many failed calls of all workers together undo the steps, and queued runs go back to the active version', async () => {
  await stepping('10');
  await shareOfTwenty();
  expect(await report(B, { abort: '10', counts: '6 0' })).toBe('current');
  expect(await report(B, { worker: 'x', abort: '10', counts: '4 2' })).toBe('ended');
  expect([await field('active'), await field('target')]).toEqual([A, null]);
  expect(await versionField(B, 'state')).toBe('ready');
  expect(await versionField(B, 'reason')).toBe('2 of 10 calls of the version failed, and abort_on_error_rate is 10 %.');
  expect(await store.client.exists(`${store.prefix}queue:app@${B}`)).toBe(0);
  expect(await store.take('w', 1, 100, `app@${A}`)).toHaveLength(20);
  expect(await report(B, { counts: '4 3' })).toBe('stale');
});

test('a few calls count before the next step, and the permitted rate undoes nothing', async () => {
  await stepping('50');
  expect(await report(B, { abort: '50', counts: '2 2' })).toBe('current');
  expect(await report(B, { abort: '50', counts: '4 2' })).toBe('current');
  store.advance(DURATION / 5);
  expect(await round()).toBe(0);
  expect(await field('share')).toBe('40');
  expect(await report(B, { abort: '50', counts: '5 3' })).toBe('current');
  store.advance(DURATION / 5);
  expect(await round()).toBe(1);
  expect(await field('active')).toBe(A);
});

test('a worker that joins after the last step delays the activation, and undoes it after the time limit', async () => {
  await stepping();
  store.advance(DURATION);
  await store.client.zadd(`${store.prefix}serving:app`, store.now() + 10_000_000, 'late');
  expect(await round()).toBe(0);
  expect([await field('active'), await field('share')]).toEqual([A, '100']);
  store.advance(600_001);
  expect(await round()).toBe(1);
  expect(await versionField(B, 'reason')).toContain('The worker late was not ready in time');
});

test('another deployment replaces a roll-out in steps', async () => {
  await stepping();
  await deploy('c'.repeat(64));
  expect(await versionField(B, 'reason')).toBe('Another deployment or activation replaced this one.');
  expect(await field('share')).toBeNull();
});

test('the queue limit counts the runs of both versions', async () => {
  await stepping();
  for (let n = 0; n < 10; n++) expect(await store.accept(`l${n}`, { deployed: true, limit: 10 })).toBe('accepted');
  expect(await store.accept('more', { deployed: true, limit: 10 })).toBe('overloaded');
});

test('a rollback in steps leaves the version retired until it is active again', async () => {
  await stepping();
  store.advance(DURATION);
  await round();
  await deploy(A);
  expect(await report(A)).toBe('current');
  expect([await field('share'), await versionField(A, 'state')]).toEqual(['20', 'retired']);
});

test('after a rollback, the queue limit counts the runs of the active version once', async () => {
  await activate(A);
  for (let n = 0; n < 4; n++) await store.accept(`a${n}`, { deployed: true, limit: 10 });
  await activate(B);
  await activate(A);
  for (let n = 0; n < 6; n++) expect(await store.accept(`b${n}`, { deployed: true, limit: 10 })).toBe('accepted');
  expect(await store.accept('more', { deployed: true, limit: 10 })).toBe('overloaded');
});

test('a late copy of an earlier report does not take back that the worker is ready', async () => {
  await activate(A);
  for (const worker of ['w', 'x'])
    await store.client.zadd(`${store.prefix}serving:app`, store.now() + 10_000_000, worker);
  await deploy(B);
  const number = (await field('number')) ?? '';
  const send = (worker: string, own: number, step: string) =>
    store.run('version-report', 'app', B, number, worker, own, step, 'late', 0, '', '0 0');
  await send('w', 1, 'preparing');
  await send('w', 2, 'ready');
  expect(await send('w', 1, 'failed')).toBe('current');
  expect(await send('x', 1, 'ready')).toBe('ended');
  expect(await field('active')).toBe(B);
});
