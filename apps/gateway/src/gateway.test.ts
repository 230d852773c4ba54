import { once } from 'node:events';
import { errorOf, textOf } from '@inference-proxy/test/client';
import { expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../test/gateway-under-test.ts';

test('a stopping gateway lets calls finish, then ends the other calls with `unavailable`', async () => {
  const gateway = await GatewayUnderTest.start({ SHUTDOWN_GRACE_S: '5' });
  const finishing = gateway.call();
  const quick = await gateway.worker.next();
  const waiting = gateway.call();
  await gateway.worker.next();
  const streaming = gateway.stream();
  const endless = await gateway.worker.next();
  await endless.items(['one']);
  const stream = await streaming;
  await once(stream, 'data');

  const stopped = gateway.stop();
  const rest = textOf(stream);
  await quick.returns('1');
  expect((await finishing).status).toBe(200);
  expect(await rest).toMatch(/^event: error\ndata: .*"unavailable".*\n\n$/);
  const answer = await waiting;
  expect(answer.status).toBe(503);
  expect(errorOf(answer)).toMatchObject({ code: 'unavailable', retryable: true });
  expect(answer.headers['retry-after']).toBeDefined();
  await stopped;
  await expect(gateway.call()).rejects.toThrow('ECONNREFUSED');
});

/** Opens a connection and collects the bytes that arrive. */
function connection(gateway: GatewayUnderTest) {
  const socket = gateway.socket();
  let text = '';
  const heard: (() => void)[] = [];
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    for (const look of heard) look();
  });
  return {
    socket,
    write: (...lines: string[]) => socket.write(lines.join('\r\n')),
    text: () => text,
    says: (words: string) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (text.includes(words)) resolve();
        };
        heard.push(look);
        look();
      }),
    ended: once(socket, 'end').then(() => text),
  };
}
const CALL = [`POST /v4/${PROJECT}/chat/run HTTP/1.1`, 'host: x', `authorization: Bearer ${token()}`];

test('a stopping gateway is unready at once, still answers while balancers notice, and closes each connection with its answer', async () => {
  const gateway = await GatewayUnderTest.start({ SHUTDOWN_GRACE_S: '600' });
  const noticed = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  gateway.shutdown.add('unready', 'balancers', () => {
    left.resolve();
    return noticed.promise;
  });
  const held = connection(gateway);
  held.write(...CALL, '', '');
  const heldRun = await gateway.worker.next();
  const streaming = connection(gateway);
  streaming.write(...CALL, 'accept: text/event-stream', '', '');
  const streamed = await gateway.worker.next();
  await streamed.items(['one']);
  await streaming.says('data: one');

  const stopped = gateway.stop();
  await left.promise;
  const ready = await gateway.get('/readyz', { connection: 'keep-alive' });
  expect([ready.status, ready.headers.connection]).toEqual([503, 'close']);
  const later = gateway.call({ headers: { connection: 'keep-alive' } });
  await (await gateway.worker.next()).returns('2');
  const answer = await later;
  expect([answer.status, answer.headers.connection]).toEqual([200, 'close']);

  noticed.resolve();
  await heldRun.returns('1');
  const text = await held.ended;
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text).toMatch(/\r\nconnection: close\r\n/i);
  await streamed.items(['two']);
  await streamed.stops();
  expect(await streaming.ended).toMatch(/data: one\n\n.*data: two\n\n.*\r\n0\r\n\r\n$/s);
  await stopped;
});

test('when the gateway refuses calls, a call on an open connection returns 503 and closes the connection', async () => {
  const gateway = await GatewayUnderTest.start({ SHUTDOWN_GRACE_S: '600' });
  const underWay = connection(gateway);
  underWay.write(...CALL, '', '');
  const run = await gateway.worker.next();
  // This connection has sent half a head, so it is not idle and is not closed with the listener.
  const late = connection(gateway);
  late.write(...CALL, '');
  await gateway.get('/healthz');
  const intake = Promise.withResolvers<void>();
  gateway.shutdown.add('drain', 'the test looks', () => intake.resolve());
  const stopped = gateway.stop();
  await intake.promise;
  late.write('', '');
  const text = await late.ended;
  expect(text).toMatch(/^HTTP\/1\.1 503 /);
  expect(text).toMatch(/\r\nconnection: close\r\n/i);
  expect(text).toMatch(/\r\nretry-after: \d+\r\n/);
  expect(text).toContain('"code":"unavailable"');
  await run.returns('1');
  expect(await underWay.ended).toMatch(/^HTTP\/1\.1 200 /);
  await stopped;
});

test('a call on a connection from before the listener closed is accepted, and a new connection is refused', async () => {
  const gateway = await GatewayUnderTest.start({ SHUTDOWN_GRACE_S: '600' });
  const made = connection(gateway);
  await once(made.socket, 'connect');
  await gateway.get('/healthz');
  const stopped = gateway.stop();
  const refused = (error: NodeJS.ErrnoException): boolean => error.code !== 'ECONNREFUSED';
  while (await gateway.get('/healthz').then(() => true, refused));
  made.write(...CALL, '', '');
  await (await gateway.worker.next()).returns('1');
  expect(await made.ended).toMatch(/^HTTP\/1\.1 200 .*connection: close/is);
  await stopped;
});

test('while Redis is unreachable, the gateway is alive, not ready, and answers 503', async () => {
  const gateway = await GatewayUnderTest.start({}, undefined, { commandMs: 2000 });
  // This request loads the apps, so that the call reaches the unanswered accept.
  await gateway.get(`/v4/${PROJECT}`);
  gateway.redis.pause();
  const [alive, ready, call] = await Promise.all([gateway.get('/healthz'), gateway.get('/readyz'), gateway.call()]);
  gateway.redis.resume();
  expect(alive.status).toBe(200);
  expect(ready.status).toBe(503);
  expect(call.status).toBe(503);
  expect(JSON.parse(call.text)).toMatchObject({
    run_id: call.headers['x-request-id'],
    error: { code: 'unavailable', retryable: true },
  });
  await gateway.stop();
});
