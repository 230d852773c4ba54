// Contract 6: connections to a real Redis that pauses, ends and restarts.
import { once } from 'node:events';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger } from './logging.ts';
import { closeRedis, connectRedis, redisReady } from './redis.ts';

/** A connection counts as silent after half a second instead of five seconds. */
const HASTY = { lookEveryMs: 100 };
let server: TestRedis;
const written: string[] = [];
const logger = createLogger({ name: 'test', destination: { write: (line) => void written.push(line) } });

beforeAll(async () => {
  server = await testRedis();
});
afterAll(() => server.stop());

test('a client connects by socket and by port, and shows its name', async () => {
  for (const url of [server.url, `redis://127.0.0.1:${server.port}/1`]) {
    const client = connectRedis(url, 'gateway.commands', logger);
    await redisReady(client);
    expect(await client.client('GETNAME')).toBe('gateway.commands');
    await closeRedis(client);
    await closeRedis(client);
  }
});

test('a client authenticates as its user by socket and by port; a wrong password is reported and not logged', async () => {
  const admin = connectRedis(server.url, 'admin', logger);
  await redisReady(admin);
  await admin.call('ACL', 'SETUSER', 'limited', 'on', '>hunter2%', '+ping', '+info', '+client|setname', '+acl|whoami');
  const at = [
    `redis+unix://limited:hunter2%25@localhost${server.socket}`,
    `redis://limited:hunter2%25@127.0.0.1:${server.port}`,
  ];
  for (const url of at) {
    const client = connectRedis(url, 'limited', logger);
    await redisReady(client);
    expect(await client.call('ACL', 'WHOAMI')).toBe('limited');
    await closeRedis(client);
    const stranger = connectRedis(url.replace('hunter2', 'hunter3'), 'stranger', logger);
    const [error] = (await once(stranger, 'error')) as [Error];
    logger.warn({ err: error }, 'the error, as a listener logs it');
    await closeRedis(stranger);
  }
  await admin.call('ACL', 'DELUSER', 'limited');
  await closeRedis(admin);
  const text = written.filter((line) => line.includes('WRONGPASS')).join('');
  expect(text).toContain('"command":"hello"');
  expect(text).not.toContain('hunter3');
});

test('a command that Redis does not answer in time rejects', async () => {
  const client = connectRedis(server.url, 'hasty', logger, { commandMs: 1000 });
  await redisReady(client);
  server.pause();
  await expect(client.get('key')).rejects.toThrow('Command timed out');
  server.resume();
  await closeRedis(client);
});

test('while Redis is away commands are refused at once, or wait if `whileAway` is `wait`; both clients work when Redis is back', async () => {
  const refusing = connectRedis(server.url, 'refusing', logger, { commandMs: 120_000 });
  const waiting = connectRedis(server.url, 'waiting', logger, { whileAway: 'wait' });
  await Promise.all([redisReady(refusing), redisReady(waiting)]);
  const noticed = [once(refusing, 'reconnecting'), once(waiting, 'reconnecting')];
  await server.kill();
  await Promise.all(noticed);
  await expect(refusing.get('key')).rejects.toThrow(/writ/);
  const answer = waiting.set('key', 'kept');
  await server.restart();
  expect(await answer).toBe('OK');
  await redisReady(refusing);
  expect(await refusing.get('key')).toBe('kept');
  const said = written
    .filter((line) => line.includes('"refusing"'))
    .map((line) => (JSON.parse(line) as { msg: string }).msg);
  expect(said).toEqual(['Redis is away; trying again until it is back', 'Redis is back']);
  await Promise.all([closeRedis(refusing), closeRedis(waiting)]);
});

test('a connection that stays silent after a question is replaced, also while it connects', async () => {
  const client = connectRedis(server.url, 'silent', logger, HASTY);
  await redisReady(client);
  server.pause();
  const answer = client.set('key', 'heard');
  // On the second connection, Redis has never sent a byte.
  for (let dropped = 0; dropped < 2; dropped++) await once(client, 'close');
  server.resume();
  expect(await answer).toBe('OK');
  await closeRedis(client);
});

test('a silent blocking connection is replaced only while it connects', async () => {
  const first = connectRedis(server.url, 'blocks', logger, HASTY);
  await redisReady(first);
  server.pause();
  const second = first.duplicate();
  await once(second, 'close');
  server.resume();
  await redisReady(second);
  expect(await second.blpop('nothing', 1)).toBe(null);
  await Promise.all([closeRedis(first), closeRedis(second)]);
});

test('a silent connection is replaced after the client was closed and opened again', async () => {
  const client = connectRedis(server.url, 'again', logger, HASTY);
  await redisReady(client);
  const ended = once(client, 'end');
  await closeRedis(client);
  await ended;
  server.pause();
  client.connect().catch(() => {});
  await once(client, 'close');
  server.resume();
  await redisReady(client);
  expect(await client.set('key', 'again')).toBe('OK');
  await closeRedis(client);
});

test('a close does not wait for a Redis that hangs', async () => {
  const client = connectRedis(server.url, 'closing', logger);
  await redisReady(client);
  server.pause();
  await closeRedis(client, 20);
  expect(client.status).toBe('end');
  await expect(redisReady(client)).rejects.toThrow('closed');
  server.resume();
});

test('the cause of a refused command is logged once per second and kind of error', async () => {
  const client = connectRedis(server.url, 'refused', logger);
  await redisReady(client);
  await client.set('text', 'x');
  const refused = (): Record<string, unknown>[] =>
    written
      .filter((line) => line.includes('Redis refused a command') && line.includes('"connection":"refused"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const calls = Array.from({ length: 20 }, () => [
    client.lpush('text', 'a-parameter'),
    client.eval('return nothing.here', 0),
  ]);
  const results = await Promise.allSettled(calls.flat());
  expect(results.every(({ status }) => status === 'rejected')).toBe(true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(refused()).toEqual([
    expect.objectContaining({
      level: 50,
      connection: 'refused',
      err: expect.objectContaining({ message: expect.stringMatching(/^WRONGTYPE /), command: 'lpush' }),
    }),
    expect.objectContaining({
      err: expect.objectContaining({ message: expect.stringMatching(/^ERR .*nothing/), command: 'eval' }),
    }),
  ]);
  expect(written.join('')).not.toContain('a-parameter');
  await closeRedis(client);
});
