// Contract 4: the journey of a delivery against real receivers. The records are in memory.
import { randomBytes } from 'node:crypto';
import type { DueDelivery } from '@inference-proxy/contracts';
import { SealedBox, serviceSignature, WebhookKeys } from '@inference-proxy/crypto';
import { AddressPolicy, GuardedAgent, parseNetworks, WebhookUrls } from '@inference-proxy/egress';
import { Registry } from '@inference-proxy/platform';
import type {
  AttemptRecord,
  CircuitSignal,
  DeliveryTask,
  NextStep,
  Slot,
  SlotAnswer,
  SlotRequest,
} from '@inference-proxy/store';
import { type Receiver, receiver } from '@inference-proxy/test/receiver';
import { afterEach, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { HostTurns } from '../fairness/host-turns.ts';
import { Permits, type PermitsOptions } from '../fairness/permits.ts';
import { DeliveryMetrics } from '../operations/delivery-metrics.ts';
import { Deliver, type DeliverOptions } from './deliver.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const project = 'demo';
const runId = '0199f0a0-0000-7000-8000-000000000001';
const secret = 'whsec_aGVsbG8gd29ybGQ=';
const body = Buffer.from('{"run_id":"0199","result":[1.0,"\u2028"]}');
const box = new SealedBox([randomBytes(32)]);
const keys = new WebhookKeys([randomBytes(32)]);

type RecordStore = DeliverOptions['store'];
type JobQueue = DeliverOptions['queue'];
type SlotStore = PermitsOptions['slots'];

/** The record of one run's delivery, with simulated failures of Redis. */
class Records implements RecordStore {
  readonly made: { readonly record: AttemptRecord; readonly next: NextStep }[] = [];
  state: 'pending' | 'settled' = 'pending';
  refusals = 0;
  parked = 0;
  recordFailures = 0;
  superseded = false;
  ageMs = 0;
  earlyMs = 0;
  wokenMeanwhile = false;

  constructor(
    readonly url: string,
    readonly sealed = box.seal(Buffer.from(secret), { project, app: 'hello', runId, url }),
  ) {}

  async begin(job: DueDelivery, leaseMs: number) {
    expect(leaseMs).toBeGreaterThan(0);
    if (this.state === 'settled' || job.attempt <= this.made.length) return { state: 'settled' } as const;
    if (this.earlyMs > 0) return { state: 'early', inMs: this.earlyMs } as const;
    const { url, sealed, refusals, ageMs } = this;
    const own = { deliveryId: 'msg_1', url, secret: sealed, endedAt: 0, token: 't', refusals, content: { body } };
    const task: DeliveryTask = { ...job, app: 'hello', ...own, ageMs, earlier: 0, runAttempt: 1 };
    return { state: 'begun', task } as const;
  }

  async body() {
    return body;
  }

  async park() {
    this.parked += 1;
    return this.wokenMeanwhile ? ('again' as const) : ('recorded' as const);
  }

  async record(_: DeliveryTask, record: AttemptRecord, next: NextStep) {
    if (this.recordFailures > 0) {
      this.recordFailures -= 1;
      throw new Error('Redis is away');
    }
    if (this.superseded) return 'superseded';
    this.made.push({ record, next });
    if (next.state === 'pending') this.refusals = next.refusals;
    else this.state = 'settled';
    return 'recorded';
  }
}

class Jobs implements JobQueue {
  readonly added: { readonly job: DueDelivery; readonly delayMs: number }[] = [];
  async add(job: DueDelivery, delayMs: number) {
    this.added.push({ job, delayMs });
  }
}

/** The slots of a receiver; `free` is their number. */
class Slots implements SlotStore {
  readonly entered: { readonly host: string; readonly entry: SlotRequest }[] = [];
  readonly left: CircuitSignal[] = [];
  free = 100;
  circuitOpen = false;

  async acquire(due: DueDelivery, host: string, entry: SlotRequest): Promise<SlotAnswer> {
    this.entered.push({ host, entry });
    if (entry !== 'forced') {
      if (this.circuitOpen) return { state: 'parked', reason: 'circuit_open' };
      if (this.free === 0) return { state: 'parked', reason: 'host_busy' };
    }
    this.free -= 1;
    return { state: 'open', slot: { ...due, host, name: 's', passUntil: 0 } };
  }

  async release(_: Slot, outcome: CircuitSignal) {
    this.left.push(outcome);
    this.free += 1;
    return false;
  }

  async releaseUnused() {
    this.free += 1;
  }
}

/** Longer than any test, for limits that a test does not examine. */
const PATIENT_MS = 60_000;

const lines: { readonly text: string; readonly fields: object }[] = [];
const log = (fields: object, text: string) => void lines.push({ fields, text });

const policy = new AddressPolicy(parseNetworks('127.0.0.0/8'));

function journey(records: Records, more: Partial<DeliverOptions> = {}) {
  lines.length = 0;
  const agent = new GuardedAgent({ policy, connectTimeoutMs: PATIENT_MS });
  cleanups.push(() => agent.close());
  const jobs = new Jobs();
  const slots = new Slots();
  const turns = new HostTurns({
    open: 2,
    proven: 2,
    beyond: 0,
    quickMs: PATIENT_MS,
    waitMs: PATIENT_MS,
    stillMs: PATIENT_MS,
    waiters: 10,
  });
  const permits = new Permits({ slots, turns, log: { debug: log } });
  const deliver = new Deliver({
    store: records,
    queue: jobs,
    permits,
    agent,
    urls: new WebhookUrls({ policy }),
    signers: { box, keys },
    schedule: { delaysS: [0, 5, 300, 1800, 7200], jitter: 0 },
    limits: { headMs: PATIENT_MS, answerMs: PATIENT_MS, answerBytes: 4096 },
    leaseMs: 3 * PATIENT_MS,
    recordMs: PATIENT_MS,
    version: '0.1.0',
    log: { debug: log, info: log, warn: log, error: log },
    lines: { info: log, warn: log, error: log },
    accounts: { metrics: new DeliveryMetrics(new Registry()), tracing: undefined },
    ...more,
  });
  return {
    jobs,
    slots,
    run: (attempt = 1, slot?: Slot) => deliver.deliver({ project, runId, attempt }, slot && permits.ofWoken(slot)),
  };
}

async function standing<R extends Receiver>(made: Promise<R>): Promise<R> {
  const one = await made;
  cleanups.push(() => one.close());
  return one;
}

test('a delivery is signed over its exact bytes and recorded, and no further job is queued', async () => {
  const { url, requests } = await standing(receiver(() => ({ status: 200 })));
  const records = new Records(url);
  const { run, jobs } = journey(records);
  expect(await run()).toBe('recorded');
  const [request] = requests;
  expect(request?.body).toEqual(body);
  const headers = request?.headers as Record<string, string>;
  expect(new Webhook(secret).verify(request?.body ?? '', headers)).toEqual(JSON.parse(body.toString()));
  expect(headers['x-service-webhook-signature']).toBe(
    serviceSignature(Buffer.from(secret), runId, Number(headers['x-service-webhook-timestamp']), body),
  );
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'user-agent': 'inference-proxy/0.1.0',
    'x-request-id': runId,
  });
  expect(records.made).toMatchObject([{ record: { status: 200, address: '127.0.0.1' }, next: { state: 'delivered' } }]);
  expect(jobs.added).toEqual([]);
  expect(await run()).toBe('settled');
  expect(requests).toHaveLength(1);
});

test('a failed attempt is recorded first, and then the next attempt is queued with its delay', async () => {
  const { url, requests } = await standing(receiver((_, count) => ({ status: count < 3 ? 503 : 200 })));
  const records = new Records(url);
  const { run, jobs } = journey(records);
  for (const attempt of [1, 2, 3]) expect(await run(attempt)).toBe('recorded');
  expect(jobs.added).toEqual([
    { job: { project, runId, attempt: 2 }, delayMs: 5000 },
    { job: { project, runId, attempt: 3 }, delayMs: 300_000 },
  ]);
  expect(records.made.map(({ next }) => next.state)).toEqual(['pending', 'pending', 'delivered']);
  const [first, second, third] = requests;
  expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
  expect(third?.body).toEqual(first?.body);
});

test('the record counts refusals, so failures between refusals do not stop a delivery early', async () => {
  const statuses = [503, 400, 400, 400, 400];
  const { url } = await standing(receiver((_, count) => ({ status: statuses[count - 1] ?? 200 })));
  const records = new Records(url);
  const { run } = journey(records, { schedule: { delaysS: Array(10).fill(0), jitter: 0 } });
  for (const attempt of [1, 2, 3, 4, 5]) await run(attempt);
  expect(records.made.map(({ next }) => next.state)).toEqual(['pending', 'pending', 'pending', 'pending', 'failed']);
});

test('if Redis is away after the POST, the record is retried, and the attempt is made once', async () => {
  const { url, requests } = await standing(receiver(() => ({ status: 200 })));
  const records = new Records(url);
  records.recordFailures = 2;
  expect(await journey(records).run()).toBe('recorded');
  expect(records.made).toHaveLength(1);
  expect(requests).toHaveLength(1);
});

test('if Redis is away for longer, the attempt stays unrecorded and is repeated later', async () => {
  const { url } = await standing(receiver(() => ({ status: 500 })));
  const records = new Records(url);
  records.recordFailures = 100;
  const { run, jobs } = journey(records, { recordMs: 800 });
  expect(await run()).toBe('unrecorded');
  expect(jobs.added).toEqual([]);
  records.recordFailures = 0;
  expect(await run()).toBe('recorded');
});

test('a superseded attempt queues nothing', async () => {
  const { url } = await standing(receiver(() => ({ status: 500 })));
  const records = new Records(url);
  records.superseded = true;
  const { run, jobs } = journey(records);
  expect(await run()).toBe('superseded');
  expect(jobs.added).toEqual([]);
});

test('a failure of the queue does not undo the record', async () => {
  const { url } = await standing(receiver(() => ({ status: 500 })));
  const records = new Records(url);
  const queue = { add: () => Promise.reject(new Error('Redis is away')) };
  expect(await journey(records, { queue }).run()).toBe('recorded');
  expect(records.made).toHaveLength(1);
});

test.each([
  ['an address that is allowed', ['127.0.0.1'], { status: 200 }],
  ['an address that is not allowed', ['10.20.30.40'], { errorClass: 'blocked' }],
  ['an address inside an IPv6 one', ['::ffff:10.20.30.40'], { errorClass: 'blocked' }],
])(
  'the record of a name with %s has no private address, and the log of the dispatcher has the address',
  async (_, addresses, made) => {
    const { url } = await standing(receiver(() => ({ status: 200 })));
    const records = new Records(url.replace('127.0.0.1', 'receiver.test'));
    const agent = new GuardedAgent({ policy, connectTimeoutMs: PATIENT_MS, lookup: async () => addresses });
    cleanups.push(() => agent.close());
    expect(await journey(records, { agent }).run()).toBe('recorded');
    expect(records.made).toMatchObject([{ record: made }]);
    expect(JSON.stringify(records.made)).not.toMatch(/127\.0\.0\.1|10\.20\.30\.40/);
    expect(lines.at(-1)?.fields).toMatchObject({ address: addresses[0] });
  },
);

test.each<[string, string, Partial<DeliverOptions>, Partial<AttemptRecord>]>([
  ['to an address that is not allowed now', 'http://10.0.0.1/', {}, { errorClass: 'blocked' }],
  [
    'to an http URL, while https is required now',
    'http://127.0.0.1/',
    { urls: new WebhookUrls({ policy, requireHttps: true }) },
    { errorClass: 'blocked' },
  ],
  [
    'whose secret no key opens',
    'http://127.0.0.1/',
    { signers: { box: new SealedBox([randomBytes(32)]), keys } },
    { errorClass: 'unsigned' },
  ],
])('a delivery %s sends nothing, and its attempt is recorded and retried', async (_name, url, more, record) => {
  const records = new Records(url);
  const { run, jobs } = journey(records, more);
  expect(await run()).toBe('recorded');
  expect(records.made).toMatchObject([{ record, next: { state: 'pending' } }]);
  expect(jobs.added).toHaveLength(1);
});

test('a delivery whose URL was changed in the store sends nothing and fails at once with an error in the log', async () => {
  const { url, requests } = await standing(receiver(() => ({ status: 200 })));
  const records = new Records(
    url,
    box.seal(Buffer.from(secret), { project, app: 'hello', runId, url: `${url}victim` }),
  );
  const { run, jobs } = journey(records);
  expect(await run()).toBe('recorded');
  expect(records.made).toMatchObject([{ record: { errorClass: 'altered' }, next: { state: 'failed' } }]);
  expect([requests.length, jobs.added.length]).toEqual([0, 0]);
  expect(lines).toContainEqual(expect.objectContaining({ text: expect.stringContaining('was changed in Redis') }));
});

test.each([
  ['the share of its receiver is open', { free: 0 }, 'host_busy'],
  ["its receiver's circuit is open", { circuitOpen: true }, 'circuit_open'],
])('a delivery is parked without an attempt and without a job if %s', async (_name, state, reason) => {
  const { url, requests } = await standing(receiver(() => ({ status: 200 })));
  const records = new Records(url);
  const { run, jobs, slots } = journey(records);
  Object.assign(slots, state);
  expect(await run()).toBe('parked');
  expect([records.parked, jobs.added.length, requests.length, records.made.length]).toEqual([1, 0, 0, 0]);
  expect(lines).toMatchObject([{ text: 'parked', fields: { reason } }]);
});

test('a delivery that is woken during its parking is handed out again', async () => {
  const { url } = await standing(receiver(() => ({ status: 200 })));
  const records = new Records(url);
  records.wokenMeanwhile = true;
  const { run, jobs, slots } = journey(records);
  slots.free = 0;
  expect(await run()).toBe('parked');
  expect(jobs.added).toEqual([{ job: { project, runId, attempt: 1 }, delayMs: 0 }]);
});

test('a woken delivery uses its slot, and releases the slot if the delivery has ended', async () => {
  const { url, requests, port } = await standing(receiver(() => ({ status: 200 })));
  const records = new Records(url);
  const { run, slots } = journey(records);
  const slot = { project, runId, attempt: 1, host: `127.0.0.1:${port}`, name: 'given', passUntil: 0 };
  expect(await run(1, slot)).toBe('recorded');
  expect(slots.entered).toEqual([]);
  expect(await run(1, slot)).toBe('settled');
  expect(slots.left).toEqual(['good', 'none']);
  expect(requests).toHaveLength(1);
});

test('a delivery that was parked until the end of its schedule gets a slot for its last attempt', async () => {
  const { url } = await standing(receiver(() => ({ status: 500 })));
  const records = new Records(url);
  records.ageMs = 10 * 86_400_000;
  const { run, jobs, slots } = journey(records);
  slots.circuitOpen = true;
  expect(await run()).toBe('recorded');
  expect(slots.entered).toMatchObject([{ entry: 'forced' }]);
  expect(records.made).toMatchObject([{ next: { state: 'failed' } }]);
  expect(jobs.added).toEqual([]);
});

test('a job that is early by the store’s clock returns to the queue for the remaining time', async () => {
  const { url, requests } = await standing(receiver(() => ({ status: 200 })));
  const records = new Records(url);
  records.earlyMs = 3_600_000;
  const { run, jobs } = journey(records);
  expect(await run()).toBe('early');
  expect(jobs.added).toEqual([{ job: { project, runId, attempt: 1 }, delayMs: 3_600_000 }]);
  expect(requests).toHaveLength(0);
});

test.each<[string, number | undefined, CircuitSignal]>([
  ['accepts the delivery', 200, 'good'],
  ['fails with 500', 500, 'bad'],
  ['rejects with 429', 429, 'bad'],
  ['refuses with 400', 400, 'good'],
])('the slot of a receiver that %s is released with the right outcome', async (_name, status, outcome) => {
  const { url } = await standing(receiver(() => ({ status: status ?? 200 })));
  const { run, slots } = journey(new Records(url));
  await run();
  expect(slots.left).toEqual([outcome]);
});

test('each attempt logs one line, without the secret, the body or the rest of the URL', async () => {
  const { url } = await standing(receiver(() => ({ status: 503 })));
  const records = new Records(`${url}?token=hidden-in-the-url`);
  await journey(records).run();
  expect(lines).toHaveLength(1);
  expect(lines[0]?.fields).toMatchObject({
    project,
    runId,
    attempt: 1,
    status: 503,
    judged: { state: 'pending', delayMs: 5000 },
  });
  const text = JSON.stringify(lines);
  for (const hidden of [secret, 'hidden-in-the-url', '1.0', records.sealed]) expect(text).not.toContain(hidden);
});
