// Contract 4: webhooks, from the end of a real run to real receivers.
import { spawn } from 'node:child_process';
import { createHmac, createPublicKey, verify } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { projectRoot } from '@inference-proxy/supervisor';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { Caller, type CallOptions } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { type Receiver, type Request, rawReceiver, receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

let stack: SharedStack;
let caller: Caller;
beforeAll(async () => {
  stack = await joinSharedStack('deliveries', ['streams', 'faults', 'hasty']);
  ({ caller } = stack);
});
afterAll(() => stack.leave());

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});
async function standing<R extends Receiver>(made: Promise<R>): Promise<R> {
  const one = await made;
  cleanups.push(() => one.close());
  return one;
}
const taking = () => standing(receiver(() => ({ status: 204 })));

const SECRET = 'a secret of the caller';

/** Returns the options of a call whose envelope is sent to `url`. */
const to = (url: string, secret: string | Buffer = SECRET): CallOptions => ({
  query: `?webhookEndpoint=${encodeURIComponent(url)}`,
  headers: { 'x-webhook-secret': Buffer.from(secret).toString('latin1') },
});

/** Resolves with the n-th request of a receiver. */
const nth = ({ requests }: { requests: Request[] }, n: number): Promise<Request> => until(() => requests[n - 1]);

/** Resolves with the state of a run's delivery when the delivery is not pending. */
const settled = (runId: string) =>
  until(async () => {
    const { webhook } = await caller.lookUp(runId);
    return webhook && webhook.state !== 'pending' && webhook;
  });

const header = ({ headers }: Request, name: string): string => String(headers[name]);

/** Checks the service's signature as a receiver does. */
function expectSigned(request: Request, secret: string | Buffer): void {
  const timestamp = header(request, 'x-service-webhook-timestamp');
  const digest = createHmac('sha256', secret)
    .update(`${header(request, 'x-request-id')}.${timestamp}.`)
    .update(request.body)
    .digest('hex');
  expect(header(request, 'x-service-webhook-signature')).toBe(`v1,${digest}`);
  expect(Math.abs(Date.now() / 1000 - Number(timestamp))).toBeLessThan(600);
  expect(header(request, 'webhook-timestamp')).toBe(timestamp);
}

test('a delivery is the caller’s envelope byte for byte, signed in both schemes', async () => {
  const sink = await taking();
  const answer = await caller.call(
    'streams/value',
    '{"value":["naïve 東京 🚀",1.0,12345678901234567890]}',
    to(sink.url),
  );
  const request = await nth(sink, 1);
  expect(request.body.toString()).toBe(answer.text);
  expect(request.headers).toMatchObject({
    'content-type': 'application/json',
    'user-agent': expect.stringMatching(/^inference-proxy\/\d+\.\d+\.\d+/),
    'x-request-id': answer.headers['x-request-id'],
    'webhook-id': expect.stringMatching(/./),
  });
  expectSigned(request, SECRET);
  new Webhook(SECRET, { format: 'raw' }).verify(request.body, request.headers as Record<string, string>);
  expect(await settled(String(answer.headers['x-request-id']))).toMatchObject({ state: 'delivered', attempts: 1 });
});

test('a whsec_ secret is decoded for Standard Webhooks; the other scheme signs with its bytes', async () => {
  const sink = await taking();
  const secret = `whsec_${Buffer.from('twenty-four bytes of key').toString('base64')}`;
  await caller.call('streams/value', { value: 1 }, to(sink.url, secret));
  const request = await nth(sink, 1);
  expectSigned(request, secret);
  new Webhook(secret).verify(request.body, request.headers as Record<string, string>);
});

test('the secret is the header’s bytes as received', async () => {
  const sink = await taking();
  const secret = Buffer.from('sécret 東京');
  await caller.call('streams/value', { value: 1 }, to(sink.url, secret));
  const request = await nth(sink, 1);
  expectSigned(request, secret);
  new Webhook(secret, { format: 'raw' }).verify(request.body, request.headers as Record<string, string>);
});

test('without a secret a delivery has the signature that the public key of the gateway verifies', async () => {
  const sink = await taking();
  await caller.call('streams/value', { value: 1 }, { ...to(sink.url), headers: {} });
  const request = await nth(sink, 1);
  expect(Object.keys(request.headers).filter((name) => name.includes('signature'))).toEqual(['webhook-signature']);
  const listed = await fetch(`http://127.0.0.1:${caller.port}/.well-known/webhook-keys`);
  expect([listed.status, listed.headers.get('cache-control')]).toEqual([200, 'public, max-age=300']);
  const { keys } = (await listed.json()) as { keys: { id: string; key: string }[] };
  expect(keys).toEqual([{ id: expect.stringMatching(/^[0-9a-f]{16}$/), key: expect.stringMatching(/^whpk_/) }]);
  const der = `302a300506032b6570032100${Buffer.from(String(keys[0]?.key).slice(5), 'base64').toString('hex')}`;
  const key = createPublicKey({ key: Buffer.from(der, 'hex'), format: 'der', type: 'spki' });
  const signed = Buffer.from(`${header(request, 'webhook-id')}.${header(request, 'webhook-timestamp')}.`);
  const [, signature = ''] = /^v1a,(.*)$/.exec(header(request, 'webhook-signature')) ?? [];
  expect(verify(null, Buffer.concat([signed, request.body]), key, Buffer.from(signature, 'base64'))).toBe(true);
});

test('a streamed run is delivered with the list of its items, and the webhook does not change the stream', async () => {
  const sink = await taking();
  const items = ['a', 'two\nlines', { b: 1 }, 'data: ready\n\n'];
  const { events, runId } = await caller.stream('streams/items', { items }, to(sink.url));
  expect(await events.rest()).toEqual(['data: a', 'data: two\ndata: lines', 'data: {"b":1}', 'data: ready']);
  const { body } = await nth(sink, 1);
  expect(JSON.parse(body.toString())).toMatchObject({ run_id: runId, status: 'succeeded', result: items });
});

test.each([
  ['function_error', 'streams/raises', 'failed'],
  ['timed_out', 'hasty/sleeps', 'timed_out'],
  ['replica_crashed', 'faults/exits', 'failed'],
])('a run that ends with %s is delivered', async (code, fn, status) => {
  const sink = await taking();
  const answer = await caller.call(fn, {}, to(sink.url));
  const request = await nth(sink, 1);
  expect(request.body.toString()).toBe(answer.text);
  expect(JSON.parse(answer.text)).toMatchObject({ status, error: { code } });
  expectSigned(request, SECRET);
});

test('a failure after items is delivered as a failure', async () => {
  const sink = await taking();
  const { events } = await caller.stream('streams/raises_late', { n: 2 }, to(sink.url));
  expect(await events.rest()).toHaveLength(3);
  expect(JSON.parse((await nth(sink, 1)).body.toString())).toMatchObject({
    status: 'failed',
    error: { code: 'function_error' },
  });
});

test('an asynchronous run is delivered, and so is a run whose caller has disconnected', async () => {
  const sink = await taking();
  const { query, headers } = to(sink.url);
  const asked = await caller.call('streams/value', { value: 'later' }, { query: `${query}&async=true`, headers });
  expect(JSON.parse((await nth(sink, 1)).body.toString())).toMatchObject({
    run_id: JSON.parse(asked.text).run_id,
    result: 'later',
  });
  const { events, runId } = await caller.stream('streams/sleeping', { n: 3, seconds: 0.3 }, { query, headers });
  await events.next();
  events.leave();
  expect(JSON.parse((await nth(sink, 2)).body.toString())).toMatchObject({ run_id: runId, result: [0, 1, 2] });
});

test('after a 503 the next attempt has the same body, the same webhook-id and a new timestamp', async () => {
  const sink = await standing(receiver((_, count) => ({ status: count < 3 ? 503 : 200 })));
  const answer = await caller.call('streams/value', { value: 1 }, to(sink.url));
  await nth(sink, 3);
  const { requests } = sink;
  expect(new Set(requests.map(({ body }) => body.toString()))).toEqual(new Set([answer.text]));
  for (const name of ['webhook-id', 'x-request-id'])
    expect(new Set(requests.map((request) => header(request, name))).size).toBe(1);
  const stamps = requests.map((request) => Number(header(request, 'webhook-timestamp')));
  expect(new Set(stamps).size).toBe(3);
  expect([...stamps].sort()).toEqual(stamps);
  for (const request of requests) expectSigned(request, SECRET);
  expect(await settled(String(answer.headers['x-request-id']))).toMatchObject({ state: 'delivered', attempts: 3 });
  expect(requests).toHaveLength(3);
});

test('a 410 ends a delivery, and a delivery that is never accepted fails at the end of the schedule', async () => {
  const gone = await standing(receiver(() => ({ status: 410 })));
  const failing = await standing(receiver(() => ({ status: 500 })));
  const [first, second] = await Promise.all([
    caller.call('streams/value', { value: 1 }, to(gone.url)),
    caller.call('streams/value', { value: 1 }, to(failing.url)),
  ]);
  expect(await settled(String(first.headers['x-request-id']))).toMatchObject({ state: 'failed', attempts: 1 });
  expect(await settled(String(second.headers['x-request-id']))).toMatchObject({ state: 'failed', attempts: 4 });
  expect([gone.requests.length, failing.requests.length]).toEqual([1, 4]);
});

test('a redirect is not followed and counts as a failure', async () => {
  const elsewhere = await taking();
  const sink = await standing(
    receiver((_, count) => (count === 1 ? { status: 307, headers: { location: elsewhere.url } } : { status: 204 })),
  );
  const answer = await caller.call('streams/value', { value: 1 }, to(sink.url));
  expect(await settled(String(answer.headers['x-request-id']))).toMatchObject({ state: 'delivered', attempts: 2 });
  expect(sink.requests).toHaveLength(2);
  expect(elsewhere.requests).toEqual([]);
});

test('a hanging receiver delays neither the caller nor other receivers', async () => {
  let asked = 0;
  let hangs = false;
  const hanging = await standing(
    rawReceiver((socket) => {
      socket.once('data', () => {
        if (hangs) asked += 1;
        else socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
      });
    }),
  );
  const sink = await taking();
  // A receiver has its whole share of attempts only after a first success.
  const first = await caller.call('streams/value', { value: 1 }, to(hanging.url));
  expect(await settled(String(first.headers['x-request-id']))).toMatchObject({ state: 'delivered' });
  hangs = true;
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => caller.call('streams/value', { value: 1 }, to(hanging.url))),
  );
  // The calls are answered although their deliveries are open: no caller waits for the receiver.
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  await until(() => asked >= 10);
  const answer = await caller.call('streams/value', { value: 1 }, to(sink.url));
  await nth(sink, 1);
  const { webhook } = await caller.lookUp(String(answers[9]?.headers['x-request-id']));
  expect(webhook).toMatchObject({ state: 'pending' });
  expect(answer.status).toBe(200);
});

describe.each([
  ['Node', process.execPath, 'receiver.mjs'],
  ['Python', 'python3', 'receiver.py'],
])('the example receiver in %s', (_language, program, script) => {
  /** Starts the example receiver. `said` returns its next line of output. */
  async function example(secret: string) {
    const child = spawn(program, [join(projectRoot(), 'examples', 'receivers', script)], {
      env: { PATH: process.env.PATH, PORT: '0', SECRET: secret },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    cleanups.push(async () => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const said = async (): Promise<string> => String((await lines.next()).value);
    return { url: /http:\S+/.exec(await said())?.[0] ?? '', said };
  }

  test('accepts real deliveries and ignores a redelivery', async () => {
    const { url, said } = await example(SECRET);
    const answer = await caller.call('streams/value', { value: 'naïve 東京 🚀' }, to(url));
    const runId = String(answer.headers['x-request-id']);
    const id = `msg_${runId.replaceAll('-', '')}`;
    expect(await said()).toBe(`verified ${id}: ${answer.text}`);
    await settled(runId);
    const again = await caller.request(`${caller.path}/runs/${runId}/deliveries/${id}/redeliver`);
    expect(again.status).toBe(202);
    expect(await said()).toContain(`repeated ${id}`);
    expect(await settled(runId)).toMatchObject({ state: 'delivered', attempts: 2 });
  });

  test('rejects a delivery that is signed with another secret', async () => {
    const { url, said } = await example('another');
    await caller.call('streams/value', { value: 1 }, to(url));
    expect(await said()).toContain('refused msg_');
  });
});
