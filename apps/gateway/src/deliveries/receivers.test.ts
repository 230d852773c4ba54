// Contract 5, "Deliveries": `GET /deliveries/receivers`.
import { HostStore } from '@inference-proxy/store';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { GatewayUnderTest, NEVER_MS, PROJECT, token } from '../../test/gateway-under-test.ts';

const HOST = 'receiver.example.com:8443';
let gateway: GatewayUnderTest;
let redis: Redis;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  redis = new Redis(gateway.redis.socket ?? gateway.redis.url);
  const limits = { leaseMs: NEVER_MS, perProject: 16, perHost: 64, project: 192, probeMs: NEVER_MS };
  const hosts = new HostStore(redis, { ...limits, commandMs: NEVER_MS });
  for (const runId of ['r1', 'r2']) await hosts.acquire({ project: PROJECT, runId, attempt: 1 }, HOST, 'normal', 16);
});
afterAll(async () => {
  redis.disconnect();
  await gateway.stop();
});

const get = (path = '', headers = {}, project = PROJECT) =>
  gateway.get(`/v4/${project}/deliveries/receivers${path}`, headers);

test('a receiver shows its circuit, its open attempts and its parked deliveries', async () => {
  const receiver = {
    ...{ host: HOST, circuit: 'closed', failures_in_a_row: 0, open_attempts: 1, parked: 1 },
    oldest_parked_at: expect.stringMatching(/^\d{4}-.*Z$/),
  };
  expect(JSON.parse((await get()).text)).toEqual({ receivers: [receiver] });
  expect(JSON.parse((await get(`/${HOST}`)).text)).toEqual(receiver);
  expect(JSON.parse((await get('/RECEIVER.example.com:8443')).text)).toEqual(receiver);
  expect(JSON.parse((await get('/receiver.example.com')).text)).toMatchObject({
    ...{ host: 'receiver.example.com:443', circuit: 'closed', parked: 0 },
  });
});

test('another project sees nothing of these deliveries', async () => {
  const other = { authorization: `Bearer ${token({ project_id: 'other' })}` };
  expect(JSON.parse((await get('', other, 'other')).text)).toEqual({ receivers: [] });
  expect(JSON.parse((await get(`/${HOST}`, other, 'other')).text)).toMatchObject({ parked: 0, open_attempts: 0 });
  expect((await get('', other)).status).toBe(403);
  expect((await get('', { authorization: `Bearer ${token({ scope: 'call' })}` })).status).toBe(403);
});

test.each(['/a%20b', '/one%0Atwo', `/${'x'.repeat(300)}`, '/a:b', '/%2A'])('%s is no receiver', async (path) => {
  expect((await get(path)).status).toBe(404);
});
