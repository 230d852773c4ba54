// Contract 1: a call that is refused sends one script. Without a run, no cleanup is needed.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { GatewayStore, NewRun, RunReader } from '../index.ts';
import { call, RealStore } from './real-store.ts';

let store: RealStore;
let gateway: GatewayStore;
beforeAll(async () => {
  store = await RealStore.open();
  gateway = store.gateway('g1');
});
afterAll(() => store.close());

/** Returns the number of scripts that Redis has run so far. */
async function scripts(): Promise<number> {
  const stats = await store.admin.info('commandstats');
  const calls = (name: string): number =>
    Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  return calls('evalsha') + calls('eval');
}

/** Returns the state and the number of scripts of a call with a reader. */
async function cost(run: NewRun): Promise<[state: string, scripts: number]> {
  const before = await scripts();
  const { accepted, reader } = gateway.acceptor.accept(run, 'items');
  const { state } = await accepted;
  if (state === 'accepted') (reader as RunReader).close();
  // The answer to the last command proves that Redis has executed every earlier command.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  await gateway.progress('demo', 'none');
  return [state, (await scripts()) - before];
}

const keyed = (fingerprint: string): Partial<NewRun> => ({ promised: true, idempotency: { key: 'k', fingerprint } });

test.each<[string, string, () => NewRun]>([
  ['joined', 'joins a run', () => call('demo', keyed('f'))],
  ['conflict', 'is another request under its key', () => call('demo', keyed('g'))],
  ['overloaded', 'finds the queue full', () => call('demo', { queueLimit: 1 })],
])('a call that is answered with `%s`, because it %s, sends one script', async (state, _, run) => {
  await gateway.acceptor.accept(call('demo', keyed('f')), 'none').accepted;
  await cost(call('demo'));
  expect(await cost(run())).toEqual([state, 1]);
});

test('a call that Redis refuses for memory sends no second script', async () => {
  await store.admin.config('SET', 'maxmemory', '1');
  const before = await scripts();
  await expect(gateway.acceptor.accept(call('demo'), 'items').accepted).rejects.toMatchObject({ code: 'overloaded' });
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  await gateway.progress('demo', 'none');
  await store.admin.config('SET', 'maxmemory', '0');
  // Redis does not count the refused script.
  expect((await scripts()) - before).toBe(0);
});

test('the disconnect of an accepted run’s reader is reported to the store', async () => {
  expect(await cost(call('demo'))).toEqual(['accepted', 2]);
});
