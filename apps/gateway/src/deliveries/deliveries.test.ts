// Contract 5, "Deliveries": the delivery log and redelivery, on a real store. The test records attempts as a dispatcher would.
import { setTimeout } from 'node:timers/promises';
import { type AttemptRecord, type Begun, DeliveryStore, defaultTimings, type NextStep } from '@inference-proxy/store';
import { errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { GatewayUnderTest, NEVER_MS, PROJECT, token } from '../../test/gateway-under-test.ts';

/** A time before every run of this test. */
const LONG_BEFORE = new Date(Date.now() - 60_000).toISOString();

let gateway: GatewayUnderTest;
let redis: Redis;
let attempts: DeliveryStore;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  redis = new Redis(gateway.redis.socket ?? gateway.redis.url);
  attempts = new DeliveryStore(redis, { ...defaultTimings, commandMs: NEVER_MS });
});
afterAll(async () => {
  redis.disconnect();
  await gateway.stop();
});

/** Returns a run that has ended and whose envelope is for `url`. */
async function ended(url = 'https://hooks.example/a?key=1', text = 'x', at = gateway): Promise<string> {
  const query = `?async=true&webhookEndpoint=${encodeURIComponent(url)}`;
  const answer = await at.call({ query, body: JSON.stringify({ text }), headers: { 'x-webhook-secret': 's' } });
  expect(answer.status).toBe(202);
  await (await gateway.worker.next()).returns('1');
  return JSON.parse(answer.text).run_id;
}

type Task = Extract<Begun, { state: 'begun' }>['task'];

async function begin(runId: string, attempt = 1): Promise<Task> {
  const begun = await attempts.begin({ project: PROJECT, runId, attempt }, NEVER_MS);
  if (begun.state !== 'begun') throw new Error(begun.state);
  return begun.task;
}

const GIVEN_UP: NextStep = { state: 'failed' };
const made = (fields: Partial<AttemptRecord> = {}): AttemptRecord => ({
  at: Date.now(),
  durationMs: 3,
  status: 500,
  ...fields,
});
const record = async (task: Task, next: NextStep = GIVEN_UP, fields: Partial<AttemptRecord> = {}) =>
  expect(await attempts.record(task, made(fields), next)).toBe('recorded');

async function log(runId: string) {
  const answer = await gateway.get(`/v4/${PROJECT}/runs/${runId}/deliveries`);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text).deliveries;
}
const redeliver = async (runId: string, delivery = `msg_${runId.replaceAll('-', '')}`) =>
  gateway.request(`/v4/${PROJECT}/runs/${runId}/deliveries/${delivery}/redeliver`, { method: 'POST' });
const list = async (query = '') => JSON.parse((await gateway.get(`/v4/${PROJECT}/deliveries${query}`)).text);

test('the log of a run has its delivery and every attempt: time, address, answer and next attempt', async () => {
  const runId = await ended();
  const id = `msg_${runId.replaceAll('-', '')}`;
  expect(await log(runId)).toMatchObject([
    { delivery_id: id, run_id: runId, url: 'https://hooks.example/a?key=1', status: 'pending', attempts: 0, log: [] },
  ]);
  const first = await begin(runId);
  expect(await log(runId)).toMatchObject([{ attempt_under_way: true }]);
  const fields = {
    address: '192.0.2.1',
    status: 307,
    errorClass: 'redirect',
    location: '/b',
    answer: 'moved',
    retryAfterS: 7,
  };
  const before = Date.now();
  await record(first, { state: 'pending', delayMs: NEVER_MS, refusals: 0 }, fields);
  await attempts
    .begin({ project: PROJECT, runId, attempt: 2 }, NEVER_MS)
    .then((early) => expect(early.state).toBe('early'));
  const [delivery] = await log(runId);
  expect(delivery).toMatchObject({
    status: 'pending',
    attempts: 1,
    log: [
      {
        attempt: 1,
        at: expect.stringMatching(/^2.*Z$/),
        duration_ms: 3,
        address: '192.0.2.1',
        status: 307,
        error: 'redirect',
        location: '/b',
        answer: 'moved',
        retry_after_s: 7,
        next_attempt_at: delivery.next_attempt_at,
      },
    ],
  });
  expect(Date.parse(delivery.next_attempt_at)).toBeGreaterThanOrEqual(before + NEVER_MS - 1000);
  const run = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs/${runId}`)).text);
  expect(run.webhook).toEqual({ state: 'pending', attempts: 1, next_attempt_at: delivery.next_attempt_at });
});

test('a parked delivery has the reason and the time of its parking, and its next attempt has them too', async () => {
  const runId = await ended();
  const task = await begin(runId);
  expect(await attempts.park(task, 'circuit_open', NEVER_MS)).toBe('recorded');
  expect(await log(runId)).toMatchObject([
    { parked: { reason: 'circuit_open', since: expect.any(String) }, attempts: 0 },
  ]);
  await record(await begin(runId), { state: 'delivered' }, { status: 204 });
  const [delivery] = await log(runId);
  expect(delivery.parked).toBeUndefined();
  expect(delivery).toMatchObject({ status: 'delivered', log: [{ status: 204, parked: { reason: 'circuit_open' } }] });
});

test('a slot that is granted while its delivery is being parked is not lost', async () => {
  const runId = await ended();
  const task = await begin(runId);
  expect((await attempts.begin({ project: PROJECT, runId, attempt: 1 }, NEVER_MS)).state).toBe('busy');
  expect(await attempts.park(task, 'host_busy', 3_600_000)).toBe('again');
});

test('a run without a webhook has no deliveries, an open run has a waiting delivery, and an unknown run returns 404', async () => {
  const plain = await gateway.call({ query: '?async=true' });
  const { run_id: plainId } = JSON.parse(plain.text);
  expect(await log(plainId)).toEqual([]);
  await (await gateway.worker.next()).returns('1');
  const open = await gateway.call({
    query: `?async=true&webhookEndpoint=${encodeURIComponent('https://hooks.example/')}`,
  });
  const { run_id: openId } = JSON.parse(open.text);
  expect(await log(openId)).toMatchObject([{ status: 'waiting', attempts: 0 }]);
  expect((await redeliver(openId)).status).toBe(409);
  await (await gateway.worker.next()).returns('1');
  for (const path of ['runs/0199f0a0-0000-7000-8000-000000000001/deliveries', 'runs/nonsense/deliveries']) {
    expect((await gateway.get(`/v4/${PROJECT}/${path}`)).status).toBe(404);
  }
  expect((await redeliver(openId, 'msg_other')).status).toBe(404);
});

test('a redelivery has the same id and secret, and begins a new schedule', async () => {
  const runId = await ended();
  const first = await begin(runId);
  await record(first);
  const answer = await redeliver(runId);
  expect(answer.status).toBe(202);
  expect(JSON.parse(answer.text)).toEqual({ run_id: runId, delivery_id: first.deliveryId, status: 'pending' });
  const again = await begin(runId, 2);
  expect(again).toMatchObject({ deliveryId: first.deliveryId, secret: first.secret, earlier: 1, refusals: 0 });
  expect(await attempts.body(again)).toEqual(await attempts.body(first));
  await record(again, { state: 'delivered' }, { status: 200 });
  expect(await log(runId)).toMatchObject([
    { status: 'delivered', attempts: 2, log: [{ status: 500 }, { status: 200 }] },
  ]);
  expect((await redeliver(runId)).status).toBe(202);
});

test('a run is kept until its redelivery ends, although its retention has ended', async () => {
  const forgetful = await GatewayUnderTest.start({ RUN_RETENTION_S: '1' }, gateway);
  const status = async (runId: string): Promise<number> => (await gateway.get(`/v4/${PROJECT}/runs/${runId}`)).status;
  const forgotten = async (runId: string): Promise<void> => {
    while ((await status(runId)) !== 404) await setTimeout(20);
  };
  const kept = await ended(undefined, undefined, forgetful);
  await record(await begin(kept));
  expect((await redeliver(kept)).status).toBe(202);
  const later = await ended(undefined, undefined, forgetful);
  await record(await begin(later));
  await forgotten(later);
  expect(await status(kept)).toBe(200);
  await record(await begin(kept, 2), { state: 'delivered' }, { status: 200 });
  await forgotten(kept);
  await forgetful.stop();
});

test('a redelivery is refused during an attempt, also for many requests at once', async () => {
  const runId = await ended();
  const task = await begin(runId);
  const during = await Promise.all(Array.from({ length: 10 }, () => redeliver(runId)));
  expect(during.map(({ status }) => status)).toEqual(Array(10).fill(409));
  expect(JSON.parse(during[0]?.text ?? '')).toMatchObject({ run_id: runId, error: { code: 'conflict' } });
  await record(task);
});

test('each granted redelivery makes exactly one attempt, also if requests race', async () => {
  const runId = await ended();
  await record(await begin(runId));
  let granted = 0;
  let begun = 1;
  for (let round = 0; round < 5; round += 1) {
    const asking = Array.from({ length: 8 }, () => redeliver(runId).then(({ status }) => status));
    // Several dispatchers take the same attempt at the same time.
    const taking = Array.from({ length: 4 }, () =>
      attempts.begin({ project: PROJECT, runId, attempt: begun + 1 }, NEVER_MS),
    );
    const statuses = await Promise.all(asking);
    granted += statuses.filter((status) => status === 202).length;
    const tasks = (await Promise.all(taking)).flatMap((one) => (one.state === 'begun' ? [one.task] : []));
    expect(tasks.length).toBeLessThanOrEqual(1);
    const task = tasks[0] ?? (await begin(runId, begun + 1));
    begun += 1;
    await record(task);
    expect(granted).toBe(begun - 1);
  }
  expect(await log(runId)).toMatchObject([{ attempts: begun }]);
});

test("the project's deliveries are listed newest first, by state, host and time, in pages", async () => {
  const before = Date.now();
  const ids: string[] = [];
  for (const url of ['https://one.example/', 'https://two.example:8443/', 'https://one.example:443/x'])
    ids.push(await ended(url));
  const [first = '', second = '', third = ''] = ids;
  await record(await begin(first));
  await record(await begin(second), { state: 'delivered' }, { status: 200 });
  const since = `since=${new Date(before).toISOString()}`;
  const found = async (query: string) =>
    (await list(`?${since}&${query}`)).deliveries.map(({ run_id }: { run_id: string }) => run_id);
  expect(await found('')).toEqual([third, second, first]);
  expect(await found('status=failed')).toEqual([first]);
  expect(await found('status=delivered')).toEqual([second]);
  expect(await found('status=pending')).toEqual([third]);
  expect(await found('host=one.example')).toEqual([third, first]);
  expect(await found('host=ONE.example:443')).toEqual([third, first]);
  expect(await found('host=two.example:8443')).toEqual([second]);
  expect(await found('host=two.example:443')).toEqual([]);
  expect((await list(`?until=${LONG_BEFORE}`)).deliveries).toEqual([]);
  const count = async (query: string) =>
    JSON.parse((await gateway.get(`/v4/${PROJECT}/deliveries/count?${query}`)).text);
  expect(await count(since)).toEqual({ count: 3 });
  expect(await count(`${since}&status=failed`)).toEqual({ count: 1 });
  expect(await count(`${since}&host=one.example`)).toEqual({ count: 2 });
  expect((await gateway.get(`/v4/${PROJECT}/deliveries/count?hosts=one.example`)).status).toBe(400);
  const page = await list(`?${since}&limit=2`);
  expect(page.deliveries).toHaveLength(2);
  expect(page.deliveries[1]).toMatchObject({ last_attempt: { status: 200 } });
  const rest = await list(`?${since}&limit=2&cursor=${page.cursor}`);
  expect(rest).toMatchObject({ deliveries: [{ run_id: first }] });
  expect(rest.cursor).toBeUndefined();
});

test.each([
  'status=lost',
  'limit=0',
  'limit=1000',
  'limit=x',
  'cursor=nonsense',
  'since=yesterday',
  'until=2026-11-21',
  'since=2026-02-30T00:00:00Z',
  'host=',
  'host=a&host=b',
])('a list with %s returns 400', async (query) => {
  const answer = await gateway.get(`/v4/${PROJECT}/deliveries?${query}`);
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'invalid_request']);
});

test('a bulk redelivery sends the failed deliveries of a host or a time, at most `limit` in a call', async () => {
  const ids: string[] = [];
  for (let at = 0; at < 5; at += 1) ids.push(await ended('https://bulk.example/'));
  for (const id of ids.slice(0, 4)) await record(await begin(id));
  const bulk = async (query: string) =>
    JSON.parse((await gateway.request(`/v4/${PROJECT}/deliveries/redeliver?${query}`, { method: 'POST' })).text);
  const first = await bulk('host=bulk.example&limit=3');
  expect(first).toMatchObject({ redelivered: 3, under_way: 0, cursor: expect.any(String) });
  expect(await bulk(`host=bulk.example&limit=3&cursor=${first.cursor}`)).toEqual({ redelivered: 1, under_way: 0 });
  expect(await bulk('host=bulk.example')).toEqual({ redelivered: 0, under_way: 0 });
  // These deliveries are due already, so a second request changes nothing.
  expect(await bulk('host=bulk.example&status=pending')).toMatchObject({ redelivered: 1, under_way: 4 });
  expect((await begin(ids[0] as string, 2)).attempt).toBe(2);
});

test('an unknown filter is refused, and no delivery is sent again', async () => {
  await record(await begin(await ended('https://misspelt.example/')));
  const path = `/v4/${PROJECT}/deliveries/redeliver?hosts=misspelt.example`;
  const answer = await gateway.request(path, { method: 'POST' });
  expect(answer.status).toBe(400);
  expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('`hosts`') });
  const { deliveries } = await list('?host=misspelt.example');
  expect(deliveries).toMatchObject([{ attempts: 1 }]);
});

test('reading needs the scope runs:read, and redelivery needs the scope runs:write', async () => {
  const runId = await ended();
  const delivery = `msg_${runId.replaceAll('-', '')}`;
  const as = (scope: string) => ({ authorization: `Bearer ${token({ scope })}` });
  const ask = async (method: string, path: string, scope: string) =>
    (await gateway.request(`/v4/${PROJECT}/${path}`, { method, headers: as(scope) })).status;
  for (const path of [`runs/${runId}/deliveries`, 'deliveries']) {
    expect([await ask('GET', path, 'runs:read'), await ask('GET', path, 'call')]).toEqual([200, 403]);
  }
  for (const path of [`runs/${runId}/deliveries/${delivery}/redeliver`, 'deliveries/redeliver?host=none.example']) {
    expect([await ask('POST', path, 'runs:write'), await ask('POST', path, 'runs:read')]).toEqual([202, 403]);
  }
});
