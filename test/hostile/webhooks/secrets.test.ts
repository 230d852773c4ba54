// Contract 4: Redis, its files, logs, metrics, traces, errors and answers never contain a webhook secret in clear.
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { redisAddress } from '@inference-proxy/platform';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Caller } from '../../client/caller.ts';
import { request } from '../../client/http.ts';
import { until } from '../../client/until.ts';
import { receiver } from '../../receiver/receivers.ts';
import type { TestStack } from '../../stack/test-stack.ts';
import { hostileStack, settled, to } from './receiving.ts';

let stack: TestStack;
let caller: Caller;
/** Receives the traces of the stack. */
let collector: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  collector = await receiver(() => ({ status: 200 }));
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}` };
  ({ stack, caller } = await hostileStack({ LOG_LEVEL: 'trace', ...traces }));
});
afterAll(async () => {
  await stack.stop();
  await collector.close();
});

const SECRET = 'kept-to-itself-5d41402abc4b2a76';
const WHSEC = `whsec_${Buffer.from('another secret, 24 bytes').toString('base64')}`;
/** Returns all encodings of a secret that a reader can decode without a key. */
const forms = (secret: string): string[] => {
  const bytes = Buffer.from(secret);
  const aligned = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(4, -4),
  );
  return [secret, bytes.toString('hex'), encodeURIComponent(secret), ...aligned];
};

/** Records every command that Redis receives from now on. */
async function monitored(): Promise<{ text: () => string; stop: () => void }> {
  const { path, username, password } = redisAddress(stack.redisUrl);
  const socket = connect(path as string);
  socket.write(`AUTH ${username} ${password}\r\n`);
  await once(socket, 'data');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.write('MONITOR\r\n');
  await once(socket, 'data');
  return { text: () => text, stop: () => socket.destroy() };
}

async function keysAndValues(): Promise<string> {
  const redis = new Redis(redisAddress(stack.redisUrl));
  const parts: string[] = [];
  for (const key of await redis.keys('*')) {
    // `DUMP` returns any type in Redis' own encoding, which may compress texts. So hashes and lists are read as texts, too.
    parts.push(key, (await redis.dumpBuffer(key))?.toString('latin1') ?? '');
    if ((await redis.type(key)) === 'hash') parts.push(...(await redis.hvals(key)));
    if ((await redis.type(key)) === 'list') parts.push(...(await redis.lrange(key, 0, -1)));
  }
  redis.disconnect();
  return parts.join('\n');
}

async function persisted(): Promise<string> {
  const folder = join(stack.appsDir, '..', 'data', 'redis');
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = files
    .filter((file) => file.isFile())
    .map((file) => readFile(join(file.parentPath, file.name), 'latin1'));
  return (await Promise.all(texts)).join('\n');
}

async function metrics(): Promise<string> {
  const ports = [...stack.logs().matchAll(/"operationsPort":(\d+)/g)].map(([, port]) => Number(port));
  expect(new Set(ports).size).toBeGreaterThanOrEqual(3);
  const answers = await Promise.all(ports.map((port) => request(port, '/metrics', { method: 'GET' })));
  return answers.map(({ text }) => text).join('\n');
}

test('no data of the service contains a webhook secret in clear', async () => {
  const commands = await monitored();
  const failing = await receiver((_, count) => ({ status: count % 3 === 0 ? 200 : 500 }));
  const answers: string[] = [];
  const ask = async (path: string, method = 'GET') => void answers.push((await caller.request(path, { method })).text);
  const ids: string[] = [];
  for (const secret of [SECRET, WHSEC]) {
    for (const [fn, params] of [
      ['hooks/value', { value: 1 }],
      ['hooks/raises', {}],
      ['narrow/sleeps', { seconds: 0 }],
    ] as const) {
      const answer = await caller.call(fn, params, to(failing.url, secret));
      ids.push(String(answer.headers['x-request-id']));
      answers.push(answer.text, JSON.stringify(answer.headers));
    }
    // Rejected calls: their answers and log lines must not contain the secret.
    const { headers } = to(failing.url, secret);
    for (const query of ['?webhookEndpoint=http://10.0.0.1/', '?webhookEndpoint=']) {
      answers.push((await caller.call('hooks/value', {}, { query, headers: headers ?? {} })).text);
    }
    answers.push((await caller.call('hooks/value', '{', to(failing.url, secret))).text);
  }
  await until(() => failing.requests.length >= ids.length);
  for (const id of ids) {
    const delivery = await settled(caller, id);
    await ask(`/v4/demo/runs/${id}`);
    await ask(`/v4/demo/runs/${id}/deliveries`);
    await ask(`/v4/demo/runs/${id}/deliveries/${delivery.delivery_id}/redeliver`, 'POST');
    await settled(caller, id);
  }
  await ask('/v4/demo/deliveries');
  await ask('/v4/demo/runs');
  await until(() => collector.requests.some(({ body }) => body.includes(ids[0] as string)));
  const everything = {
    answers: answers.join('\n'),
    commands: commands.text(),
    'keys and values': await keysAndValues(),
    files: await persisted(),
    logs: stack.logs(),
    metrics: await metrics(),
    traces: collector.requests.map(({ body }) => body.toString('latin1')).join('\n'),
    'what receivers got': failing.requests.map(({ headers, body }) => JSON.stringify(headers) + body).join('\n'),
  };
  commands.stop();
  await failing.close();
  // The search works: every place but the metrics contains the run's id.
  for (const [place, text] of Object.entries(everything)) {
    if (place !== 'metrics') expect(text).toContain(ids[0]);
    for (const form of [...forms(SECRET), ...forms(WHSEC)])
      expect([place, text.includes(form)]).toEqual([place, false]);
  }
});
