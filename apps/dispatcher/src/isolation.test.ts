// Contract 4, "Isolation": many hosts, dead hosts, one busy host, hanging hosts, and a backlog.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Delivery, type DeliveryFilter, DeliveryQueue } from '@inference-proxy/store';
import { refusing } from '@inference-proxy/test/receiver';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { DeliveringStore, PROJECT, until } from './testing/delivering-store.ts';

let store: DeliveringStore;
beforeAll(async () => {
  store = await DeliveringStore.open();
});
afterAll(() => store.close());

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  // The receivers close first, so no dispatcher waits for a hanging receiver.
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await store.stopDispatchers();
});

/** Starts a server on every address of 127.0.0.0/8. Returns a function from a number to the URL of a host. */
async function hosts(server: Server): Promise<(n: number) => string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  cleanups.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return (n) => `http://127.${1 + (n >> 16)}.${(n >> 8) & 255}.${1 + (n & 255)}:${port}/hook`;
}

/** The number of deliveries that a receiver accepts before it waits for `opened`. */
const FREE = 20;

/** Starts receivers that answer after `ms` and after `opened`. Counts the accepted deliveries and the most open requests. */
async function taking(ms = 0, answer: (request: IncomingMessage) => number = () => 204, opened?: Promise<void>) {
  const taken: { readonly id: string }[] = [];
  let open = 0;
  const most = { open: 0 };
  const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    open += 1;
    most.open = Math.max(most.open, open);
    request.resume();
    if (ms > 0) await sleep(ms);
    if (taken.length >= FREE) await opened;
    open -= 1;
    const status = answer(request);
    if (status < 300) taken.push({ id: String(request.headers['x-request-id']) });
    response.writeHead(status).end();
  };
  return { url: await hosts(createServer((request, response) => void listener(request, response))), taken, most };
}

const hanging = () => hosts(createTcpServer(() => {}));
const times = (n: number, url: (at: number) => string): string[] => Array.from({ length: n }, (_, at) => url(at));
/** Returns the deliveries of a project, as `GET /deliveries` lists them. */
async function deliveriesOf(project: string, filter: DeliveryFilter = {}): Promise<Delivery[]> {
  const found: Delivery[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.log.list(project, filter, 100, cursor);
    found.push(...page.deliveries);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}
const hostOf = (url: string): DeliveryFilter => ({ host: new URL(url).host });
const parkedOf = async (project: string, filter: DeliveryFilter = {}): Promise<number> =>
  (await deliveriesOf(project, filter)).filter(({ parked }) => parked !== undefined).length;

test('with 700 deliveries to 190 good hosts and six dead hosts, every delivery to a good host is made', async () => {
  const good = await taking();
  const silent = await hanging();
  const absent = await refusing();
  cleanups.push(() => absent.close());
  // An attempt hangs for longer than the test may take. A delivery that waited for such an attempt would never arrive.
  await store.dispatcher({ WEBHOOK_TIMEOUT_S: '600', WEBHOOK_SCHEDULE: '0,600' });
  const dead = times(100, (at) => (at % 2 ? silent(at % 5) : absent.url));
  await store.runsTo(dead);
  const ids = await store.runsTo(times(600, (at) => good.url(at % 190)));
  await until(() => good.taken.length === 600);
  expect(new Set(good.taken.map(({ id }) => id))).toEqual(new Set(ids));
});

test('a host with 400 deliveries from two dispatchers has at most its share of open attempts', async () => {
  const { url, taken, most } = await taking(5);
  await store.dispatcher({ WEBHOOK_HOST_CONCURRENCY: '8', WEBHOOK_HOST_CONCURRENCY_PROVEN: '8' });
  await store.dispatcher({ WEBHOOK_HOST_CONCURRENCY: '8', WEBHOOK_HOST_CONCURRENCY_PROVEN: '8' });
  await store.runsTo(times(400, () => url(1)));
  await until(() => taken.length === 400);
  expect(most.open).toBeLessThanOrEqual(8);
  expect(new Set(taken.map(({ id }) => id)).size).toBe(400);
  expect(await parkedOf(PROJECT, hostOf(url(1)))).toBe(0);
});

test('a quick receiver gets more open attempts than its share, and leaves the shares of other projects free', async () => {
  const { url, taken, most } = await taking(20);
  await store.dispatcher();
  await store.runsTo(times(600, () => url(3)));
  await until(() => taken.length === 600);
  expect(most.open).toBeGreaterThan(16);
  expect(most.open).toBeLessThanOrEqual(48);
});

test('parked deliveries hold no place and no socket: with four places, 40 deliveries to a hanging host delay no others', async () => {
  const connected = { now: 0, most: 0 };
  const server = createTcpServer((socket) => {
    connected.now += 1;
    connected.most = Math.max(connected.most, connected.now);
    socket.on('close', () => {
      connected.now -= 1;
    });
  });
  const silent = await hosts(server);
  const good = await taking();
  await store.dispatcher({
    WEBHOOK_CONCURRENCY: '4',
    WEBHOOK_HOST_CONCURRENCY: '2',
    WEBHOOK_TIMEOUT_S: '600',
    WEBHOOK_SCHEDULE: '0,600',
  });
  await store.runsTo(times(40, () => silent(1)));
  await until(async () => (await parkedOf(PROJECT, hostOf(silent(1)))) >= 36);
  await store.runsTo(times(100, (at) => good.url(at)));
  await until(() => good.taken.length === 100);
  expect(connected.most).toBeLessThanOrEqual(2);
  const states = await deliveriesOf(PROJECT, hostOf(silent(1)));
  expect(states.filter(({ parked }) => parked?.reason === 'host_busy').length).toBeGreaterThanOrEqual(36);
});

test('a dead host gets only probes, and after a successful probe its deliveries go out a few at a time', async () => {
  let down = true;
  let asked = 0;
  const { url, taken, most } = await taking(2, () => {
    if (down) asked += 1;
    return down ? 503 : 204;
  });
  await store.dispatcher({
    WEBHOOK_PROBE_S: '0.3',
    WEBHOOK_SCHEDULE: `0${',0.1'.repeat(30)}`,
    WEBHOOK_HOST_CONCURRENCY_PROVEN: '16',
  });
  const ids = await store.runsTo(times(120, () => url(2)));
  await until(async () => (await parkedOf(PROJECT, hostOf(url(2)))) > 80);
  await until(async () =>
    (await deliveriesOf(PROJECT, hostOf(url(2)))).some(({ parked }) => parked?.reason === 'circuit_open'),
  );
  // The attempts that were open when the circuit opened have ended.
  await until(async () => (await deliveriesOf(PROJECT, hostOf(url(2)))).every(({ underWay }) => !underWay));
  const askedBefore = asked;
  const from = performance.now();
  await until(() => asked - askedBefore >= 3);
  // Probes follow after 0.3, 0.6, 1.2 s and so on: a few. The schedule alone would have sent hundreds of attempts.
  const probes = Math.ceil(Math.log2(1 + (performance.now() - from) / 300)) + 1;
  expect(asked - askedBefore).toBeLessThanOrEqual(probes);
  down = false;
  most.open = 0;
  await until(() => taken.length === 120);
  expect(most.open).toBeLessThanOrEqual(16);
  expect(new Set(taken.map(({ id }) => id))).toEqual(new Set(ids));
});

test('a backlog of one hour does not delay fresh deliveries, and is delivered too', async () => {
  const opened = Promise.withResolvers<void>();
  const { url, taken } = await taking(0, undefined, opened.promise);
  // The jobs get times of an hour ago, before the dispatcher starts.
  jest.spyOn(DeliveryQueue.prototype, 'now').mockImplementation(async () => Date.now() - 3_600_000);
  const old = await store.runsTo(times(300, (at) => url(at % 100)));
  jest.restoreAllMocks();
  await store.dispatcher({ WEBHOOK_CONCURRENCY: '8' });
  await until(() => taken.length >= FREE);
  const fresh = new Set(await store.runsTo(times(40, (at) => url(100 + at))));
  opened.resolve();
  await until(() => taken.filter(({ id }) => fresh.has(id)).length === 40);
  const drained = taken.filter(({ id }) => !fresh.has(id)).length;
  expect(drained).toBeLessThan(250);
  await until(() => taken.length === 340);
  expect(new Set(taken.map(({ id }) => id))).toEqual(new Set([...old, ...fresh]));
});

test("240 deliveries of one project to 60 receivers that hang do not delay another project's deliveries", async () => {
  const silent = await hanging();
  const good = await taking();
  await store.dispatcher({ WEBHOOK_CONCURRENCY: '16', WEBHOOK_TIMEOUT_S: '600', WEBHOOK_SCHEDULE: '0,600' });
  await store.runsTo(
    times(240, (at) => silent(1100 + (at % 60))),
    undefined,
    'hung',
  );
  await until(async () => (await parkedOf('hung')) >= 228);
  await store.runsTo(
    times(60, (at) => good.url(1100 + (at % 10))),
    undefined,
    'other',
  );
  await until(() => good.taken.length === 60);
});

test("60 receivers that begin to hang after a first success do not delay another project's deliveries", async () => {
  let hang = false;
  const never = new Promise<void>(() => {});
  const turning = await hosts(
    createServer(async (request, response) => {
      request.resume();
      if (hang) await never;
      response.writeHead(204).end();
    }),
  );
  const good = await taking();
  await store.dispatcher({ WEBHOOK_CONCURRENCY: '16', WEBHOOK_TIMEOUT_S: '600', WEBHOOK_SCHEDULE: '0,600' });
  const succeeded = await store.runsTo(
    times(60, (at) => turning(2100 + at)),
    undefined,
    'turned',
  );
  for (const runId of succeeded) expect(await store.settled(runId, 'turned')).toBe('delivered');
  hang = true;
  await store.runsTo(
    times(240, (at) => turning(2100 + (at % 60))),
    undefined,
    'turned',
  );
  await until(async () => (await parkedOf('turned')) >= 228);
  await store.runsTo(
    times(60, (at) => good.url(2100 + (at % 10))),
    undefined,
    'other',
  );
  await until(() => good.taken.length === 60);
});
