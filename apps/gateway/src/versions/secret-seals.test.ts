// Contract 7, "Secrets": the secrets of apps after a change of SECRETS_KEY, and after a worker's start with a new key pair.
import { randomBytes, randomUUID } from 'node:crypto';
import { SealedBox, WorkerKeys } from '@inference-proxy/crypto';
import { SecretFeed, SecretStore } from '@inference-proxy/store';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { SecretCopies } from './secret-copies.ts';
import { SecretSeals } from './secret-seals.ts';

const commandMs = 60_000;
const APP = 'chat';
const [older, newer] = [randomBytes(32), randomBytes(32)];
const boxOf = (...keys: Buffer[]): SealedBox => new SealedBox(keys);

let server: TestRedis;
let redis: Redis;
let store: SecretStore;
let project: string;
let lines: string[];
beforeAll(async () => {
  server = await testRedis();
  redis = new Redis(server.socket as string);
  store = new SecretStore(redis, { commandMs });
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});
beforeEach(async () => {
  await redis.flushall();
  project = randomUUID();
  lines = [];
});

const line = (_: object, text: string): void => void lines.push(text);
const logger = { info: line, warn: line, error: line };
const set = (box: SealedBox, name: string, value: string): Promise<void> =>
  store.set(project, APP, name, box.seal(Buffer.from(value), { project, app: APP, name }));
const round = (box: SealedBox): Promise<void> => new SecretSeals(store, box, logger).run();

/** Returns what a worker with these keys receives from a gateway with this box. */
async function received(box: SealedBox, keys: WorkerKeys, workerId = 'w1'): Promise<object> {
  const feed = new SecretFeed({ commands: redis, subscriber: redis, workerId, commandMs });
  await feed.ask(project, APP, keys.publicKey);
  await new SecretCopies(store, box, { logger, everyMs: 1 }).run();
  const sealed = (await feed.copy(project, APP)) ?? '';
  return JSON.parse(keys.open(sealed, { project, app: APP, workerId }).toString()) as object;
}

test('after a rotation, a round seals the secrets with the new key, and the old key can be removed', async () => {
  await set(boxOf(older), 'A', 'one');
  await set(boxOf(newer), 'B', 'two');
  const before = await store.state(project, APP);
  const rotated = boxOf(newer, older);
  // Both keys open the secrets before the round.
  expect(await received(rotated, new WorkerKeys())).toMatchObject({ values: { A: 'one', B: 'two' }, unopened: [] });
  await round(rotated);
  expect(await received(boxOf(newer), new WorkerKeys())).toMatchObject({
    values: { A: 'one', B: 'two' },
    unopened: [],
  });
  // The app does not restart, and the dates stay.
  const after = await store.state(project, APP);
  const datesOf = ({ revision, secrets }: typeof before) => [revision, secrets.map(({ updatedAt }) => updatedAt)];
  expect(datesOf(after)).toEqual(datesOf(before));
  await round(rotated);
  expect(await store.state(project, APP)).toEqual(after);
  expect(lines).toEqual(['sealed secrets with the newest key of SECRETS_KEY']);
});

test('a secret that a user sets or removes during a round is not overwritten', async () => {
  const rotated = boxOf(newer, older);
  for (const name of ['A', 'B']) await set(boxOf(older), name, 'old');
  const { secrets } = await store.state(project, APP);
  await set(rotated, 'A', 'fresh');
  await store.remove(project, APP, 'B');
  for (const secret of secrets) expect(await store.reseal(project, APP, secret, 'stale')).toBe(false);
  expect(await received(rotated, new WorkerKeys())).toMatchObject({ values: { A: 'fresh' } });
});

test('a secret whose key was removed stays, and is reported until a user sets it again', async () => {
  await set(boxOf(older), 'A', 'one');
  const before = await store.state(project, APP);
  await round(boxOf(newer));
  expect(await store.state(project, APP)).toEqual(before);
  expect(lines).toEqual(['no key of SECRETS_KEY opens these secrets; set them again']);
  expect(await received(boxOf(newer), new WorkerKeys())).toMatchObject({ values: {}, unopened: ['A'] });
  // The key may come back.
  expect(await received(boxOf(newer, older), new WorkerKeys())).toMatchObject({ values: { A: 'one' } });
});

test('a worker that starts with a new key pair receives a copy for this pair, also under its old name', async () => {
  const box = boxOf(newer);
  await set(box, 'A', 'one');
  const [first, second] = [new WorkerKeys(), new WorkerKeys()];
  const copy = await received(box, first);
  expect(await received(box, second)).toEqual(copy);
});
