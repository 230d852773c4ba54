// Contract 6: the span and the metrics of an attempt.
import {
  OperationsPort,
  runSpanId,
  type SpanAttributes,
  type SpanStart,
  type Tracing,
} from '@inference-proxy/platform';
import type { AttemptRecord, DeliveryTask } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import { AttemptAccount } from './attempt-account.ts';
import { DeliveryMetrics } from './delivery-metrics.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const call = `00-${traceId}-00f067aa0ba902b7-01`;
const ours = `00-${traceId}-aaaaaaaaaaaaaaaa-01`;
const runId = '0199f0a0-0000-7000-8000-000000000001';
const url = new URL('https://receiver.test/hook/hunter2?key=hunter2');

const task = (more: Partial<DeliveryTask> = {}): DeliveryTask => ({
  project: 'demo',
  app: 'hello',
  runId,
  attempt: 1,
  earlier: 0,
  ageMs: 0,
  runAttempt: 1,
  deliveryId: 'msg_1',
  url: url.href,
  endedAt: Date.now() - 2000,
  refusals: 0,
  content: { body: Buffer.from('{}') },
  token: 't',
  ...more,
});
const record = (more: Partial<AttemptRecord>): AttemptRecord => ({ at: Date.now(), durationMs: 20, ...more });

function accounts() {
  const { registry } = new OperationsPort();
  const begun: SpanStart[] = [];
  const ended: { attributes: SpanAttributes; failed: string | undefined }[] = [];
  const tracing: Tracing = {
    start(span) {
      begun.push(span);
      return { traceparent: ours, end: (attributes, failed) => void ended.push({ attributes, failed }) };
    },
    stop: async () => {},
  };
  const metrics = new DeliveryMetrics(registry);
  const value = async (sample: string): Promise<number | undefined> => {
    const line = (await registry.metrics()).split('\n').find((one) => one.startsWith(`${sample} `));
    return line === undefined ? undefined : Number(line.slice(sample.length + 1));
  };
  return { plain: { metrics, tracing: undefined }, traced: { metrics, tracing }, metrics, begun, ended, value };
}

test('the span of an attempt is a child of the function’s span, and the receiver gets it as traceparent', () => {
  const { traced, begun, ended } = accounts();
  const account = new AttemptAccount(traced, task({ attempt: 3, runAttempt: 2, traceparent: call }), url);
  expect(account.traceparent).toBe(ours);
  account.made(record({ status: 503, address: '203.0.113.7' }));
  expect(begun).toMatchObject([
    {
      kind: 'client',
      parent: `00-${traceId}-${runSpanId(runId, 2)}-01`,
      attributes: { 'http.request.resend_count': 2, 'server.address': 'receiver.test', 'server.port': 443 },
    },
  ]);
  expect(ended).toMatchObject([{ failed: '503', attributes: { 'http.response.status_code': 503 } }]);
  expect(JSON.stringify([begun, ended])).not.toContain('hunter2');
});

test('the span is a child of the call’s span if the run had no attempt', () => {
  const { traced, begun } = accounts();
  new AttemptAccount(traced, task({ runAttempt: 0, traceparent: call }), url);
  expect(begun[0]?.parent).toBe(call);
});

test('without tracing the receiver gets the caller’s traceparent, or none', () => {
  const { plain } = accounts();
  expect(new AttemptAccount(plain, task({ traceparent: call }), url).traceparent).toBe(call);
  expect(new AttemptAccount(plain, task(), url).traceparent).toBeUndefined();
});

test.each([
  [{ status: 204 }, '2xx', undefined],
  [{ status: 404 }, '4xx', '404'],
  [{ status: 307, errorClass: 'redirect' }, 'redirect', 'redirect'],
  [{ errorClass: 'timeout' }, 'timeout', 'timeout'],
] as [Partial<AttemptRecord>, string, string | undefined][])(
  'an attempt with %j is counted in class %s',
  async (made, cls, failed) => {
    const { traced, value, ended } = accounts();
    new AttemptAccount(traced, task(), url).made(record(made));
    expect(await value(`inference_proxy_delivery_attempts_total{class="${cls}"}`)).toBe(1);
    expect(await value('inference_proxy_delivery_attempt_duration_seconds_sum')).toBe(0.02);
    expect(ended[0]?.failed).toBe(failed);
  },
);

test('only first attempts count in the lag, and an attempt is open until it is made or abandoned', async () => {
  const { plain, value } = accounts();
  const first = new AttemptAccount(plain, task(), url);
  const second = new AttemptAccount(plain, task({ attempt: 2 }), url);
  expect(await value('inference_proxy_open_attempts')).toBe(2);
  first.made(record({ status: 500 }));
  second.unmade();
  expect(await value('inference_proxy_open_attempts')).toBe(0);
  expect(await value('inference_proxy_delivery_lag_seconds_count')).toBe(1);
  expect(await value('inference_proxy_delivery_lag_seconds_sum')).toBeGreaterThanOrEqual(2);
});

test('a delivery is counted by its final state when it ends', async () => {
  const { metrics, value } = accounts();
  metrics.judged({ state: 'delivered' });
  metrics.judged({ state: 'failed', why: 'gone' });
  metrics.judged({ state: 'pending' });
  expect(await value('inference_proxy_deliveries_total{end="delivered"}')).toBe(1);
  expect(await value('inference_proxy_deliveries_total{end="gone"}')).toBe(1);
  expect(await value('inference_proxy_deliveries_total{end="undefined"}')).toBeUndefined();
});
