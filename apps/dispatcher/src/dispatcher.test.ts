// Contract 4: the dispatcher's module with a real Redis and real receivers.
import { createLogger } from '@inference-proxy/platform';
import { rawReceiver, receiver } from '@inference-proxy/test/receiver';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { DeliveringStore, KEY, PROJECT, SECRET, until } from './testing/delivering-store.ts';

let store: DeliveringStore;
beforeAll(async () => {
  store = await DeliveringStore.open();
});
afterAll(() => store.close());

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await store.stopDispatchers();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

test('a run that ends with a webhook is delivered byte for byte and signed in both schemes', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  await store.dispatcher();
  const runId = await store.runTo(sink.url);
  await until(() => sink.requests.length === 1);
  const [request] = sink.requests;
  const text = request?.body.toString() ?? '';
  expect(text).toMatch(
    new RegExp(`^{"run_id":"${runId}","status":"succeeded","result":{"n":1.0},"run_time_ms":1.5,"timestamp":"`),
  );
  new Webhook(SECRET).verify(text, request?.headers as Record<string, string>);
  expect(await store.settled(runId)).toBe('delivered');
});

test('a failing receiver gets the same bytes on the schedule until it accepts them', async () => {
  const sink = await receiver((_, count) => ({ status: count < 3 ? 503 : 200 }));
  cleanups.push(() => sink.close());
  await store.dispatcher();
  const runId = await store.runTo(sink.url);
  await until(() => sink.requests.length === 3);
  expect(new Set(sink.requests.map(({ body }) => body.toString())).size).toBe(1);
  expect(new Set(sink.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(await store.settled(runId)).toBe('delivered');
});

test('a hanging receiver does not delay other receivers', async () => {
  const ended: boolean[] = [];
  const asked = Promise.withResolvers<void>();
  let open = 0;
  // A receiver has its whole share only after a first success.
  let succeeded = false;
  const hanging = await rawReceiver((socket) => {
    if (!succeeded) {
      succeeded = true;
      socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n'));
      return;
    }
    open += 1;
    if (open === 16) asked.resolve();
    socket.resume().on('close', (failed) => ended.push(failed));
  });
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  await store.dispatcher({ WEBHOOK_TIMEOUT_S: '600', WEBHOOK_CONCURRENCY: '40', WEBHOOK_HOST_CONCURRENCY: '16' });
  try {
    expect(await store.settled(await store.runTo(hanging.url))).toBe('delivered');
    for (let i = 0; i < 39; i += 1) await store.runTo(hanging.url);
    await asked.promise;
    for (let i = 0; i < 20; i += 1) await store.runTo(sink.url);
    await until(() => sink.requests.length === 20);
    // No hanging attempt ended before the 20 deliveries were received.
    expect(ended).toEqual([]);
  } finally {
    await hanging.close();
  }
});

test('a stopping dispatcher lets its open attempts end and records them', async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const slow = await rawReceiver((socket) => {
    socket.once('data', async () => {
      asked.resolve();
      await answer.promise;
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
  });
  cleanups.push(() => slow.close());
  const shutdown = await store.dispatcher();
  const runId = await store.runTo(slow.url);
  await asked.promise;
  const stopped = shutdown.stop('the test says so');
  answer.resolve();
  expect(await stopped).toBe(true);
  expect(await store.state(runId)).toBe('delivered');
});

test('an attempt whose dispatcher died between POST and record is repeated after its lease expires', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  const runId = await store.runTo(sink.url);
  // The state after a dispatcher is killed after its POST: the attempt has begun and is not recorded, and its job is gone.
  expect(await store.attempts.begin({ project: PROJECT, runId, attempt: 1 }, 500)).toMatchObject({ state: 'begun' });
  await store.dispatcher();
  await until(() => sink.requests.length > 0);
  expect(await store.settled(runId)).toBe('delivered');
});

test('the attempt after a dispatcher died before its record has the same bytes, even if the run has changed', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  const runId = await store.runTo(sink.url);
  const begun = await store.attempts.begin({ project: PROJECT, runId, attempt: 1 }, 500);
  if (begun.state !== 'begun') throw new Error(`the attempt did not begin: begin returned ${begun.state}`);
  const sent = await store.attempts.body(begun.task);
  // This change would give the next attempt another envelope.
  await store.client.hset(`ip:{${PROJECT}}:run:${runId}`, 'ms', '999');
  await store.dispatcher();
  await until(() => sink.requests.length > 0);
  expect(sent?.toString()).toContain('"run_time_ms":1.5,');
  expect(sink.requests[0]?.body).toEqual(sent);
});

test('a delivery is made after Redis was away and is back', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  const away = Promise.withResolvers<void>();
  const write = (line: string): void => {
    if (line.includes('the look for due probes and expired slots failed')) away.resolve();
  };
  await store.dispatcher({}, createLogger({ name: 'test', level: 'warn', destination: { write } }));
  store.redis.pause();
  await away.promise;
  store.redis.resume();
  await store.runTo(sink.url);
  await until(() => sink.requests.length === 1);
});

test('a secret that was sealed before a key rotation still signs', async () => {
  const sink = await receiver(() => ({ status: 200 }));
  cleanups.push(() => sink.close());
  await store.dispatcher({ SECRETS_KEY: [Buffer.alloc(32, 4), KEY].map((key) => key.toString('base64')).join(',') });
  await store.runTo(sink.url);
  await until(() => sink.requests.length === 1);
  const [request] = sink.requests;
  new Webhook(SECRET).verify(request?.body.toString() ?? '', request?.headers as Record<string, string>);
});
