// Contract 6: the operations ports, the log and the traces of the whole stack, with one call, one stream and one delivery.
// A stack of its own, because metrics count all calls, and because Redis pauses.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { page, tableRows, ticked } from '../documents/markdown.ts';
import {
  type CollectedSpan,
  type Collector,
  collector,
  type Receiver,
  type Request,
  receiver,
} from '../receiver/index.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

const SERVICES = ['gateway', 'worker', 'dispatcher'] as const;
type Service = (typeof SERVICES)[number];
const callers = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
const secret = 'hunter2-of-the-webhook';
const dashboardToken = 'a-token-of-the-dashboard';

let sink: Collector;
let hook: Receiver & { readonly requests: Request[] };
let stack: TestStack;
let caller: Caller;

beforeAll(async () => {
  sink = await collector();
  hook = await receiver(() => ({ status: 200 }));
  stack = await startTestStack({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: sink.endpoint,
      QUEUE_DASHBOARD: 'true',
      OPERATIONS_TOKEN: dashboardToken,
    },
  });
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('streams');
});
afterAll(async () => {
  await stack.stop();
  await hook.close();
  await sink.close();
});

/** Returns the log lines of all services. */
const lines = (): Record<string, unknown>[] =>
  stack
    .logs()
    .split('\n')
    .map((line) => line.slice(line.indexOf('{')))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

async function get(
  service: Service,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const ready = await until(() => lines().findLast(({ name, msg }) => name === service && msg === 'ready'));
  const answer = await fetch(`http://127.0.0.1:${ready.operationsPort}${path}`, { headers });
  return { status: answer.status, text: await answer.text() };
}

/** Returns the samples of a service's metrics by name and labels. */
async function samples(service: Service): Promise<ReadonlyMap<string, number>> {
  const { text } = await get(service, '/metrics');
  const found = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    found.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

test.each(SERVICES)('the %s is alive and ready, and exposes the metrics of its process', async (service) => {
  expect((await get(service, '/healthz')).status).toBe(200);
  expect(await get(service, '/readyz')).toEqual({ status: 200, text: '{"status":"ready"}' });
  const found = await samples(service);
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    expect(found.get(name)).toBeGreaterThanOrEqual(0);
});

test('the built dispatcher serves the queue page and the files of that page', async () => {
  expect((await get('dispatcher', '/queues')).status).toBe(401);
  const headers = { authorization: `Bearer ${dashboardToken}` };
  const { status, text } = await get('dispatcher', '/queues', headers);
  expect(status).toBe(200);
  const files = [...text.matchAll(/"(?:\/queues\/)?(static\/[^"]+)"/g)].map(([, file]) => file);
  expect(files.length).toBeGreaterThan(3);
  for (const file of files) expect((await get('dispatcher', `/queues/${file}`, headers)).status).toBe(200);
  const asked = await get('dispatcher', '/queues/api/queues?activeQueue=deliveries&status=latest&page=1', headers);
  expect([asked.status, JSON.parse(asked.text).queues.length]).toEqual([200, 2]);
});

test.each(SERVICES)(
  'docs/operations/metrics.md lists exactly the metrics of the %s, with type and meaning',
  async (service) => {
    const listed = tableRows(page('docs/operations/metrics.md'), new RegExp(`^Metrics of the ${service}$`)).map(
      ([name = '', type, , meaning]) => [...ticked(name), type, meaning],
    );
    const { text } = await get(service, '/metrics');
    const exposed = [...text.matchAll(/^# HELP (inference_proxy_\S+) (.*)\n# TYPE \S+ (\S+)$/gm)].map(
      ([, name, meaning, type]) => [name, type, meaning],
    );
    expect(listed.sort()).toEqual(exposed.sort());
  },
);

test('docs/operations/metrics.md lists exactly the labels of each metric', async () => {
  for (const service of SERVICES) {
    const listed = new Map(
      tableRows(page('docs/operations/metrics.md'), new RegExp(`^Metrics of the ${service}$`)).map(
        ([name = '', , labels = '']) => [ticked(name)[0], labels],
      ),
    );
    for (const sample of (await samples(service)).keys()) {
      const [, name = '', labels = ''] =
        /^(inference_proxy_[a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})?$/.exec(sample) ?? [];
      if (name === '') continue;
      const names = [...labels.matchAll(/([a-z_]+)="/g)].map(([, label]) => label).filter((label) => label !== 'le');
      expect([name, names.sort()]).toEqual([name, (listed.get(name) || undefined)?.split(', ').sort() ?? []]);
    }
  }
});

test('a call, a stream and a delivery change the metrics of all three services', async () => {
  const before = {
    gateway: await samples('gateway'),
    worker: await samples('worker'),
    dispatcher: await samples('dispatcher'),
  };
  await caller.call('streams/value', { value: 1 });
  const { events } = await caller.stream('streams/items', { items: ['a', 'b', 'c'] });
  expect(await events.rest()).toHaveLength(3);
  const delivered = hook.requests.length;
  await caller.call('streams/value', { value: 2 }, { query: `?webhookEndpoint=${encodeURIComponent(hook.url)}` });
  await until(() => hook.requests.length > delivered);
  const moved = async (service: Service, name: string): Promise<number> =>
    ((await samples(service)).get(name) ?? 0) - (before[service].get(name) ?? 0);
  const app = 'project="demo",app="streams"';
  expect(await moved('gateway', `inference_proxy_calls_total{${app},form="sync",code="ok"}`)).toBe(2);
  expect(await moved('gateway', `inference_proxy_calls_total{${app},form="stream",code="ok"}`)).toBe(1);
  expect(await moved('gateway', `inference_proxy_call_duration_seconds_count{${app},form="sync"}`)).toBe(2);
  expect(await moved('gateway', `inference_proxy_time_to_first_item_seconds_count{${app}}`)).toBe(1);
  await until(async () => (await moved('worker', `inference_proxy_runs_total{${app},code="ok"}`)) === 3);
  expect(await moved('worker', `inference_proxy_items_total{${app}}`)).toBe(3);
  expect(await moved('worker', `inference_proxy_run_duration_seconds_count{${app}}`)).toBe(3);
  await until(async () => (await moved('dispatcher', 'inference_proxy_deliveries_total{end="delivered"}')) === 1);
  expect(await moved('dispatcher', 'inference_proxy_delivery_attempts_total{class="2xx"}')).toBe(1);
  expect(await moved('dispatcher', 'inference_proxy_delivery_lag_seconds_count')).toBe(1);
  const worker = await samples('worker');
  expect(worker.get(`inference_proxy_replicas{${app},state="ready"}`)).toBeGreaterThanOrEqual(1);
  expect(worker.get(`inference_proxy_slots{${app}}`)).toBeGreaterThanOrEqual(1);
  expect(worker.get(`inference_proxy_free_slots{${app}}`)).toBeGreaterThanOrEqual(1);
  expect(worker.get(`inference_proxy_worker_runs{${app}}`)).toBe(0);
});

test('the log lines of the call, the run and the attempt have the same request id, and no line has the secret', async () => {
  const answer = await caller.call(
    'streams/value',
    { value: 3 },
    {
      query: `?webhookEndpoint=${encodeURIComponent(`${hook.url}?key=${secret}`)}`,
      headers: { 'x-webhook-secret': secret },
    },
  );
  const runId = answer.headers['x-request-id'];
  const found = await until(() => {
    const ours = lines().filter((line) => line.runId === runId);
    return ours.length >= 3 && ours;
  });
  expect(found.map(({ name, msg }) => [name, msg]).sort()).toEqual([
    ['dispatcher', 'delivered'],
    ['gateway', 'call'],
    ['worker', 'run'],
  ]);
  expect(stack.logs()).not.toContain(secret);
});

test('a call with a webhook is one trace of call, function and delivery, and the receiver gets the trace context', async () => {
  const answer = await caller.call(
    'streams/value',
    { value: 4 },
    {
      query: `?webhookEndpoint=${encodeURIComponent(`${hook.url}?key=${secret}`)}`,
      headers: { 'x-webhook-secret': secret, traceparent: `00-${callers.traceId}-${callers.spanId}-01` },
    },
  );
  const runId = String(answer.headers['x-request-id']);
  const spans = await until(() => {
    const ours = sink.spans.filter(({ traceId }) => traceId === callers.traceId);
    return ours.length >= 3 && ours;
  });
  expect(spans).toHaveLength(3);
  const of = (service: Service): CollectedSpan => spans.find((span) => span.service === service) as CollectedSpan;
  const [call, run, delivery] = SERVICES.map(of) as [CollectedSpan, CollectedSpan, CollectedSpan];
  expect([call.kind, run.kind, delivery.kind]).toEqual([2, 5, 3]);
  expect(call.parentSpanId).toBe(callers.spanId);
  expect(run.parentSpanId).toBe(call.spanId);
  expect(delivery.parentSpanId).toBe(run.spanId);
  for (const span of spans) expect(span.attributes['inference_proxy.run_id']).toBe(runId);
  expect(run.attributes).toMatchObject({ 'inference_proxy.app': 'streams', 'inference_proxy.function': 'value' });
  expect(delivery.attributes).toMatchObject({ 'server.address': '127.0.0.1', 'http.response.status_code': 200 });
  const received = hook.requests.find(({ headers }) => headers['x-request-id'] === runId);
  expect(received?.headers.traceparent).toBe(`00-${callers.traceId}-${delivery.spanId}-01`);
  expect(sink.bodies.join()).not.toContain(secret);
});

test('a failure of the function marks its span as an error', async () => {
  const answer = await caller.call('streams/raises', {});
  const runId = String(answer.headers['x-request-id']);
  const span = await until(() =>
    sink.spans.find(
      ({ service, attributes }) => service === 'worker' && attributes['inference_proxy.run_id'] === runId,
    ),
  );
  expect(span.status).toBe(2);
  expect(span.attributes['error.type']).toBe('function_error');
});

test('while the store does not answer, all three services are alive and not ready; then all are ready again', async () => {
  stack.pause('redis');
  try {
    for (const service of SERVICES) {
      expect(await get(service, '/readyz')).toEqual({
        status: 503,
        text: '{"status":"not ready","why":"the run store does not answer"}',
      });
      expect((await get(service, '/healthz')).status).toBe(200);
      expect((await get(service, '/metrics')).status).toBe(200);
    }
  } finally {
    stack.resume('redis');
  }
  for (const service of SERVICES) await until(async () => (await get(service, '/readyz')).status === 200);
});
