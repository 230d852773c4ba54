import { once } from 'node:events';
import { errorOf, textOf } from '@inference-proxy/test/client';
import { expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../test/gateway-under-test.ts';

test('a gateway that stops lets calls finish, then tells the rest', async () => {
  const gateway = await GatewayUnderTest.start({}, 200);
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

test('while Redis is away it is alive, not ready, and answers 503', async () => {
  const gateway = await GatewayUnderTest.start();
  // Its apps are known, so the call gets as far as the accept that is not answered.
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
