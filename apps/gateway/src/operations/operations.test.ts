// Contract 6: the metrics, log lines and spans of a gateway about calls. The test plays the worker.
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { SpanAttributes, SpanStart, Tracing } from '@inference-proxy/platform';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';

const callers = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const ours = '00-4bf92f3577b34da6a3ce929d0e0e4736-aaaaaaaaaaaaaaaa-01';

/** Spans in the order in which they began and ended. */
const begun: SpanStart[] = [];
const ended: { attributes: SpanAttributes; failed: string | undefined }[] = [];
const tracing: Tracing = {
  start(span) {
    begun.push(span);
    return { traceparent: ours, end: (attributes, failed) => void ended.push({ attributes, failed }) };
  },
  stop: async () => {},
};

let gateway: GatewayUnderTest;
let traced: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  traced = await GatewayUnderTest.start({}, gateway, { tracing });
});
afterAll(async () => {
  await traced.stop();
  await gateway.stop();
});

/** Returns the samples of a scrape by their names and labels. */
async function samples(of = gateway): Promise<Map<string, number>> {
  const text = await of.operations.registry.metrics();
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const space = line.lastIndexOf(' ');
        return [line.slice(0, space), Number(line.slice(space + 1))];
      }),
  );
}

/** Repeats `look` until it finds something. */
async function until<T>(look: () => Promise<T | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== false) return found;
    await pause(50);
  }
}

const APP = `project="${PROJECT}",app="chat"`;
const calls = (form: string, code: string): string =>
  `inference_proxy_calls_total{${APP},form="${form}",code="${code}"}`;

async function played(calling: Promise<unknown>, json = '1'): Promise<void> {
  await (await gateway.worker.next()).returns(json);
  await calling;
}

test('a call is counted and timed by its app, its form and its result', async () => {
  await played(gateway.call());
  const failing = gateway.call();
  await (await gateway.worker.next()).fails({ code: 'function_error', message: 'no', type: 'ValueError' });
  await failing;
  await played(gateway.call({ query: '?async=true' }));
  const found = await samples();
  expect(found.get(calls('sync', 'ok'))).toBe(1);
  expect(found.get(calls('sync', 'function_error'))).toBe(1);
  expect(found.get(calls('async', 'ok'))).toBe(1);
  expect(found.get(`inference_proxy_call_duration_seconds_count{${APP},form="sync"}`)).toBe(2);
});

test('a stream is counted while it is open, and its first item and its end are timed', async () => {
  const streaming = gateway.stream();
  const run = await gateway.worker.next();
  await run.items(['a']);
  const answer = await streaming;
  await once(answer, 'data');
  const during = await samples();
  expect(during.get('inference_proxy_open_streams')).toBe(1);
  expect(during.get('inference_proxy_open_calls{form="stream"}')).toBe(1);
  expect(during.get(`inference_proxy_time_to_first_item_seconds_count{${APP}}`)).toBe(1);
  expect(during.get('inference_proxy_connections')).toBeGreaterThanOrEqual(1);
  expect(during.has(calls('stream', 'ok'))).toBe(false);
  await run.items(['b']);
  await run.stops();
  answer.resume();
  await once(answer, 'end');
  const after = await samples();
  expect(after.get('inference_proxy_open_streams')).toBe(0);
  expect(after.get('inference_proxy_open_calls{form="stream"}')).toBe(0);
  expect(after.get(`inference_proxy_time_to_first_item_seconds_count{${APP}}`)).toBe(1);
  expect(after.get(calls('stream', 'ok'))).toBe(1);
  const line = gateway.lines.findLast(({ msg }) => msg === 'call');
  expect(line).toMatchObject({ status: 200, items: 2, firstItemMs: expect.any(Number), ms: expect.any(Number) });
});

test('a caller that disconnected is counted as gone', async () => {
  const answer = await Promise.all([gateway.stream(), gateway.worker.next().then((run) => run.items(['a']))]).then(
    ([stream]) => stream,
  );
  const cancelled = gateway.worker.cancelled();
  answer.destroy();
  await cancelled;
  expect((await samples()).get(calls('stream', 'gone'))).toBe(1);
});

test('names that a caller invents do not become labels', async () => {
  const before = await samples();
  for (let n = 0; n < 5; n++) {
    expect((await gateway.request(`/v4/${PROJECT}/made-up-${n}/run`, { body: '{}' })).status).toBe(404);
    expect((await gateway.request(`/v4/other-${n}/chat/run`, { body: '{}' })).status).toBe(403);
  }
  const after = await samples();
  const unknown = 'inference_proxy_calls_total{project="",app="",form="sync",code="not_found"}';
  expect((after.get(unknown) ?? 0) - (before.get(unknown) ?? 0)).toBe(5);
  expect(after.get('inference_proxy_error_answers_total{code="forbidden"}')).toBe(5);
  expect([...after.keys()].filter((name) => /made-up|other-/.test(name))).toEqual([]);
});

test('gauges report the waiting runs by project and app, and the bytes of the store', async () => {
  const calling = gateway.call();
  // The played worker takes a run only when the test asks for one. Each reading is kept for a second.
  const read = await until(async () => {
    const found = await samples(traced);
    const waits = (found.get(`inference_proxy_queue_oldest_seconds{${APP}}`) ?? 0) > 0;
    return waits && found.get(`inference_proxy_queued_runs{${APP}}`) === 1 && found;
  });
  await played(calling);
  expect(read.get(`inference_proxy_running_runs{project="${PROJECT}"}`)).toBeGreaterThanOrEqual(0);
  expect(read.get(`inference_proxy_project_bytes{project="${PROJECT}"}`)).toBeGreaterThan(0);
  await until(async () => ((await samples(traced)).get('inference_proxy_store_bytes') ?? 0) > 0);
  expect((await samples(traced)).get('inference_proxy_store_bound_bytes')).toBeGreaterThan(0);
});

test('the run and the log get the caller’s traceparent, and an invalid traceparent is ignored', async () => {
  const calling = gateway.call({ headers: { traceparent: callers } });
  const run = await gateway.worker.next();
  expect(run.taken.traceparent).toBe(callers);
  await run.returns('1');
  await calling;
  expect(gateway.lines.findLast(({ msg }) => msg === 'call')).toMatchObject({
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  });
  for (const wrong of ['nonsense', `${callers}-`, [callers, callers]]) {
    const other = gateway.call({ headers: { traceparent: wrong } });
    const taken = await gateway.worker.next();
    expect(taken.taken).not.toHaveProperty('traceparent');
    await taken.returns('1');
    expect((await other).status).toBe(200);
  }
});

test('with tracing, a call is a span below the caller’s span, and the run’s parent is the call’s span', async () => {
  const calling = traced.call({
    headers: { traceparent: callers, 'x-webhook-secret': 'hunter2' },
    query: '?webhookEndpoint=https%3A%2F%2Fexample.com%2Fhunter2',
  });
  const run = await gateway.worker.next();
  expect(run.taken.traceparent).toBe(ours);
  await run.returns('1');
  const answer = await calling;
  expect(begun).toMatchObject([{ kind: 'server', parent: callers, name: 'POST /v4/:project/:app/:function' }]);
  expect(ended).toMatchObject([
    {
      failed: undefined,
      attributes: {
        'http.response.status_code': 200,
        'inference_proxy.project': PROJECT,
        'inference_proxy.app': 'chat',
        'inference_proxy.function': 'run',
      },
    },
  ]);
  expect(begun[0]?.attributes['inference_proxy.run_id']).toBe(answer.headers['x-request-id']);
  expect(JSON.stringify([begun, ended])).not.toContain('hunter2');
});

test('a failure of the server is an error of the span, and a failure of the caller is not', async () => {
  ended.length = 0;
  const failing = traced.call();
  await (await gateway.worker.next()).fails({ code: 'worker_lost', message: 'gone' });
  await failing;
  await traced.request(`/v4/${PROJECT}/nowhere/run`, { body: '{}' });
  expect(ended.map(({ failed }) => failed)).toEqual(['worker_lost', undefined]);
});

test('if the store is unreachable, its gauges have no value, and the scrape has all other metrics', async () => {
  const alone = await GatewayUnderTest.start({}, undefined, { commandMs: 2000 });
  try {
    await alone.redis.kill();
    const found = await samples(alone);
    expect(found.get('inference_proxy_store_bytes')).toBeNaN();
    expect(found.get('inference_proxy_open_streams')).toBe(0);
  } finally {
    await alone.stop();
  }
});
