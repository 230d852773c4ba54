// Contract 2 (`unavailable`): if the store does not confirm an accept, the run may exist. A call under the same key finds the run.
import { connect, createServer, type Socket } from 'node:net';
import { errorOf } from '@inference-proxy/test/client';
import { listening, type Receiver } from '@inference-proxy/test/receiver';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';

/** A proxy before Redis that can hold back replies. */
async function holdingProxy(port: number): Promise<Receiver & { hold(): void; release(): void }> {
  const replies = new Set<Socket>();
  let holding = false;
  const server = createServer((client) => {
    const redis = connect(port, '127.0.0.1');
    const end = (): void => {
      replies.delete(redis);
      client.destroy();
      redis.destroy();
    };
    for (const socket of [client, redis]) socket.on('error', end).on('close', end);
    client.on('data', (piece) => redis.write(piece));
    redis.on('data', (piece) => client.write(piece));
    replies.add(redis);
    if (holding) redis.pause();
  });
  const each = (act: (redis: Socket) => void): void => {
    for (const redis of replies) act(redis);
  };
  return {
    ...(await listening(server)),
    hold: () => {
      holding = true;
      each((redis) => redis.pause());
    },
    release: () => {
      holding = false;
      each((redis) => redis.resume());
    },
  };
}

let gateway: GatewayUnderTest;
let behind: GatewayUnderTest;
let proxy: Awaited<ReturnType<typeof holdingProxy>>;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  proxy = await holdingProxy(gateway.redis.port);
  const env = { REDIS_URL: `redis://127.0.0.1:${proxy.port}` };
  // Less than the 5 s after which the gateway replaces a silent connection.
  behind = await GatewayUnderTest.start(env, gateway, { commandMs: 3000 });
  // The first call confirms this gateway's subscription to the project's channel.
  const first = behind.call();
  await (await gateway.worker.next()).returns('1');
  await first;
});
afterAll(async () => {
  proxy.release();
  await behind.stop();
  await proxy.close();
  await gateway.stop();
});

test('a 503 answer carries the run’s id, and a retry under the same key joins that run', async () => {
  const headers = { 'idempotency-key': 'pay once' };
  proxy.hold();
  const unanswered = await behind.call({ headers });
  const runId = String(unanswered.headers['x-request-id']);
  expect(unanswered.status).toBe(503);
  expect(JSON.parse(unanswered.text).run_id).toBe(runId);
  expect(errorOf(unanswered)).toMatchObject({ code: 'unavailable', retryable: true });
  expect(Number(unanswered.headers['retry-after'])).toBeGreaterThan(0);
  proxy.release();
  // The run was accepted nevertheless: another gateway knows it, and a worker has taken it.
  const run = await gateway.worker.next();
  expect(run.taken.runId).toBe(runId);
  const retries = [behind.call({ headers }), gateway.call({ headers })];
  await run.returns('"paid"');
  for (const answer of await Promise.all(retries)) {
    expect(answer.status).toBe(200);
    expect(answer.headers['idempotency-replayed']).toBe('true');
    expect(JSON.parse(answer.text)).toMatchObject({ run_id: runId, result: 'paid' });
  }
});

test('an unpromised run is cancelled when the store answers again', async () => {
  proxy.hold();
  const unanswered = await behind.call();
  const runId = String(unanswered.headers['x-request-id']);
  expect(unanswered.status).toBe(503);
  const run = await gateway.worker.next();
  expect(run.taken.runId).toBe(runId);
  const cancelled = gateway.worker.cancelled();
  proxy.release();
  expect(await cancelled).toBe(runId);
  await run.fails({ code: 'cancelled', message: 'The run was cancelled.' }, 'cancelled');
  expect(JSON.parse((await gateway.get(`/v4/${PROJECT}/runs/${runId}`)).text).status).toBe('cancelled');
});
