// Contract 3: the failure of one stream does not affect other streams.
import { textOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
});
afterAll(() => gateway.stop());

test('an exception while a stream is finished fails that stream, and the gateway continues', async () => {
  const uncaught: unknown[] = [];
  const onUncaught = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtException', onUncaught);
  const calling = gateway.stream();
  const run = await gateway.worker.next();
  // This result begins like a string but is malformed, so the gateway cannot make an event.
  await run.returns('"broken');
  const answer = await calling;
  expect(answer.statusCode).toBe(500);
  expect(JSON.parse(await textOf(answer))).toMatchObject({ error: { code: 'internal' }, run_id: run.taken.runId });
  expect((await gateway.get(`/v4/${PROJECT}`)).status).toBe(200);
  process.off('uncaughtException', onUncaught);
  expect(uncaught).toEqual([]);
});
