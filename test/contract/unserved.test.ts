// Contract 1 and 2, `unavailable`: an app that no worker serves. A stack of its own, because the leases are
// too short for other tests.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import type { Answer } from '../client/http.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

const GRACE_S = 2;

let stack: TestStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await startTestStack({
    env: {
      WORKER_APPS: 'demo/streams',
      WORKER_GRACE_S: `${GRACE_S}`,
      LEASE_MS: '1500',
      LEASE_RENEW_MS: '300',
      ATTEND_MS: '300',
      REAP_MS: '100',
    },
  });
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('streams');
});
afterAll(async () => {
  await stack.stop();
  await sink.close();
});

const body = (answer: Pick<Answer, 'text'>): Record<string, unknown> => JSON.parse(answer.text);
const runOf = (answer: Answer): string => String(answer.headers['x-request-id']);
const hook = (): string => `?webhookEndpoint=${encodeURIComponent(sink.url)}`;
/** Returns the body that the receiver got for a run, as text. */
const lookUp = (runId: string): Promise<string> =>
  until(() => sink.requests.find(({ headers }) => headers['x-request-id'] === runId)?.body.toString());

test('calls of an app that no worker serves wait for WORKER_GRACE_S, then are 503', async () => {
  stack.pause('worker');
  try {
    const answer = await caller.call('streams/value', { value: 1 }, { query: hook() });
    expect(answer.status).toBe(503);
    expect(body(answer)).toMatchObject({ status: 'failed', error: { code: 'unavailable', retryable: true } });
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(await lookUp(runOf(answer))).toBe(answer.text);
    const { ended_at, queued_at } = await caller.lookUp(runOf(answer));
    expect(Date.parse(String(ended_at)) - Date.parse(String(queued_at))).toBeGreaterThanOrEqual(GRACE_S * 1000);
  } finally {
    stack.resume('worker');
  }
  await until(async () => (await caller.call('streams/value', { value: 1 })).status === 200);
});
