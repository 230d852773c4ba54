// docs/security.md, "Redis": what each user of Redis may not do, and what a function can do if it knows its worker's REDIS_URL.
import { redisAddress } from '@inference-proxy/platform';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Caller } from '../../client/caller.ts';
import { until } from '../../client/until.ts';
import { type Receiver, receiver } from '../../receiver/receivers.ts';
import type { TestStack } from '../../stack/test-stack.ts';
import { deliveryOf, deliveryThat, hostileStack, type LoggedDelivery, to } from './receiving.ts';

const SERVICES = ['gateway', 'worker', 'dispatcher'] as const;
type Service = (typeof SERVICES)[number];

let stack: TestStack;
let caller: Caller;
let victim: Receiver;
const clients = new Map<string, Redis>();
beforeAll(async () => {
  ({ stack, caller } = await hostileStack({ WEBHOOK_SCHEDULE: '0,36000' }, { denials: 'expected' }));
  victim = await receiver(() => ({ status: 503 }));
  for (const user of [...SERVICES, 'monitor', 'backup'] as const)
    clients.set(user, new Redis({ ...redisAddress(stack.redisUrlOf(user)), disableClientInfo: true }));
});
afterAll(async () => {
  for (const client of clients.values()) client.disconnect();
  await stack.stop();
  await victim.close();
});

const as = (user: string): Redis => clients.get(user) as Redis;
const DENIED = /NOPERM|can't run this command|no permissions|can't access at least one/;

/** Commands that reach beyond a service's own keys. */
const DANGEROUS = [
  ['KEYS', '*'],
  ['SCAN', '0'],
  ['RANDOMKEY'],
  ['FLUSHALL'],
  ['FLUSHDB'],
  ['CONFIG', 'GET', '*'],
  ['CONFIG', 'SET', 'maxmemory', '1'],
  ['ACL', 'LIST'],
  ['ACL', 'SETUSER', 'worker', '+@all'],
  ['CLIENT', 'NO-EVICT', 'on'],
  ['CLIENT', 'KILL', 'TYPE', 'normal'],
  ['CLIENT', 'PAUSE', '1'],
  ['MONITOR'],
  ['SHUTDOWN', 'NOSAVE'],
  ['REPLICAOF', 'NO', 'ONE'],
  ['SAVE'],
  ['SCRIPT', 'FLUSH'],
  ['FUNCTION', 'LIST'],
  ['SWAPDB', '0', '1'],
  ['PUBSUB', 'SHARDCHANNELS'],
  ['SLOWLOG', 'GET'],
] as const;

test('Redis rejects a connection without a user', async () => {
  const { path } = redisAddress(stack.redisUrl);
  const stranger = new Redis({
    path: path as string,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
  });
  stranger.on('error', () => {});
  await expect(stranger.get('ip:projects')).rejects.toThrow('NOAUTH');
  stranger.disconnect();
});

describe.each([...SERVICES, 'monitor', 'backup'])('the user %s', (user) => {
  test.each(DANGEROUS.map(([command, ...args]) => [command, args.join(' ')] as const))(
    'may not %s %s',
    async (command, args) => {
      await expect(as(user).call(command, ...args.split(' ').filter(Boolean))).rejects.toThrow(DENIED);
    },
  );
});

test('only the dispatcher may list connections (for its queue page)', async () => {
  for (const user of ['gateway', 'worker', 'monitor', 'backup'])
    await expect(as(user).client('LIST')).rejects.toThrow(DENIED);
  expect(await as('dispatcher').client('LIST')).toContain('name=dispatcher');
});

test.each(['KEYS', 'FLUSHALL'])('a script may not %s if its caller may not', async (command) => {
  const script = `return redis.call('${command}', unpack(ARGV))`;
  for (const user of SERVICES)
    await expect(as(user).call('EVAL', script, '0', ...(command === 'KEYS' ? ['*'] : []))).rejects.toThrow(DENIED);
});

test.each<[Service, string[]]>([
  [
    'worker',
    ['ip:{demo}:gateways', 'ip:{demo}:runs', 'ip:{demo}:numbers', 'ip:{demo}:attempts:x', 'ip:{demo}:tombstones'],
  ],
  [
    'worker',
    [
      'ip:revoked',
      'ip:revoked:changes',
      'ip:{*}:open:demo h:1',
      'ip:{*}:circuit:demo h:1',
      '{ip}:deliveries-backlog:wait',
      'ip:rewritten',
      'ip:projects',
    ],
  ],
  // The worker may write these keys but not read them.
  ['worker', ['ip:{demo}:leases', 'ip:{demo}:due', 'ip:{demo}:deliveries', 'ip:{demo}:promises', 'ip:{demo}:kept']],
  ['gateway', ['ip:{*}:turns:h:1', 'ip:{*}:parked-count', 'another:key']],
  [
    'dispatcher',
    ['ip:{demo}:queue:hooks', 'ip:{demo}:idempotency:x', 'ip:{demo}:log:x', 'ip:{demo}:apps', 'another:key'],
  ],
])('the user %s may not read %j', async (user, keys) => {
  for (const key of keys) {
    await expect(as(user).zrange(key, '0', '-1')).rejects.toThrow(DENIED);
    await expect(as(user).call('EVAL', `return redis.call('ZRANGE', ARGV[1], 0, -1)`, '0', key)).rejects.toThrow(
      DENIED,
    );
  }
});

test('the user worker may publish and subscribe only on the channels of workers and gateways', async () => {
  for (const channel of ['ip:{demo}:else', 'another'])
    await expect(as('worker').spublish(channel, 'x')).rejects.toThrow(DENIED);
  await expect(as('worker').psubscribe('*')).rejects.toThrow(DENIED);
});

/** Changes a run in Redis, as a function can if it knows its worker's REDIS_URL and the run's id. */
const changedTo = async (runId: string, ...fields: string[]): Promise<void> => {
  expect(await as('worker').hset(`ip:{demo}:run:${runId}`, ...fields)).toBe(0);
};

/** Ends a run with a signed delivery. The victim has rejected the first attempt, and the next attempt is hours away. */
async function pending(): Promise<string> {
  const answer = await caller.call('hooks/value', { value: 1 }, to(victim.url, 'the victim’s secret'));
  const { run_id } = JSON.parse(answer.text) as { run_id: string };
  await deliveryThat(caller, run_id, ({ log }) => log.length === 1);
  return run_id;
}

/** Asks for another attempt. Resolves when the attempt is in the log. */
async function again(runId: string): Promise<LoggedDelivery> {
  const { delivery_id } = (await deliveryOf(caller, runId)) as LoggedDelivery;
  const path = `/v4/demo/runs/${runId}/deliveries/${delivery_id}/redeliver`;
  expect((await caller.request(path, { method: 'POST' })).status).toBe(202);
  return deliveryThat(caller, runId, ({ log }) => log.length === 2);
}

test('a delivery fails without a signature and without a POST if a function has changed its URL, and the log has an error', async () => {
  const attacker = await receiver(() => ({ status: 204 }));
  const runId = await pending();
  await changedTo(runId, 'hook', attacker.url);
  expect(await again(runId)).toMatchObject({ status: 'failed', log: [{ status: 503 }, { error: 'altered' }] });
  expect(attacker.requests).toEqual([]);
  // Log lines arrive in batches.
  await until(() => stack.logs().includes('the record of a delivery was changed in Redis'));
  expect(stack.logs()).not.toContain('the victim’s secret');
  await attacker.close();
});

test('a delivery fails if a function has copied the sealed secret of another run into its run', async () => {
  const attacker = await receiver(() => ({ status: 204 }));
  const [theirs, own] = [await pending(), await pending()];
  const [secret] = (await as('worker').hmget(`ip:{demo}:run:${theirs}`, 'secret')) as [string];
  await changedTo(own, 'secret', secret, 'hook', attacker.url);
  expect(await again(own)).toMatchObject({ status: 'failed', log: [{ status: 503 }, { error: 'altered' }] });
  expect(attacker.requests).toEqual([]);
  expect((await again(theirs)).log).toMatchObject([{ status: 503 }, { status: 503 }]);
  await attacker.close();
});

test('not contained: a function that knows its worker’s REDIS_URL can read and write every run whose id it knows', async () => {
  const { run_id } = JSON.parse((await caller.call('hooks/value', { value: 'private' })).text) as { run_id: string };
  const [body] = (await as('worker').hmget(`ip:{demo}:run:${run_id}`, 'body')) as [string];
  expect(body).toContain('private');
  await changedTo(run_id, 'body', '"forged"');
  expect(await caller.lookUp(run_id)).toMatchObject({ result: 'forged' });
});
