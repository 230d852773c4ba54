// Contract 6: the log line, the metrics and the span of an attempt.
import { OperationsPort, parseTraceparent, runSpanId, type SpanStart, type Tracing } from '@inference-proxy/platform';
import type { TakenRun } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import { RunAccount, type RunEnded } from './run-account.ts';
import { RunMetrics } from './run-metrics.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const call = `00-${traceId}-00f067aa0ba902b7-01`;
const run: TakenRun = {
  project: 'demo',
  app: 'hello',
  queue: 'hello',
  fn: 'run',
  runId: '0199f0a0-0000-7000-8000-000000000001',
  token: 'w:1',
  attempt: 1,
  paced: false,
  promised: false,
  params: Buffer.from('{}'),
};
const succeeded: RunEnded = {
  version: 'v1',
  ended: 'ended',
  state: 'succeeded',
  items: 2,
  bytes: 10,
  runTimeMs: 12.3456,
};

function accounts() {
  const { registry } = new OperationsPort();
  const lines: { level: string; fields: object; text: string }[] = [];
  const begun: SpanStart[] = [];
  const failed: (string | undefined)[] = [];
  const tracing: Tracing = {
    start(span) {
      begun.push(span);
      return {
        traceparent: `00-${traceId}-${span.spanId}-01`,
        end: (_, error) => void failed.push(error),
      };
    },
    stop: async () => {},
  };
  const line = (level: string) => (fields: object, text: string) => void lines.push({ level, fields, text });
  const metrics = new RunMetrics(registry);
  const log = { info: line('info'), warn: line('warn'), error: line('error') };
  const value = async (sample: string): Promise<number | undefined> => {
    const line = (await registry.metrics()).split('\n').find((one) => one.startsWith(`${sample} `));
    return line === undefined ? undefined : Number(line.slice(sample.length + 1));
  };
  return {
    plain: { metrics, tracing: undefined, log },
    traced: { metrics, tracing, log },
    lines,
    begun,
    failed,
    value,
  };
}

test('an attempt is counted while it runs, its items when they come, and its duration at its end', async () => {
  const { plain, lines, value } = accounts();
  const account = new RunAccount(plain, run);
  const labels = '{project="demo",app="hello"}';
  expect(await value(`inference_proxy_worker_runs${labels}`)).toBe(1);
  account.items(2);
  expect(await value(`inference_proxy_items_total${labels}`)).toBe(2);
  account.end(succeeded);
  expect(await value(`inference_proxy_worker_runs${labels}`)).toBe(0);
  expect(await value('inference_proxy_runs_total{project="demo",app="hello",code="ok"}')).toBe(1);
  expect(await value(`inference_proxy_run_duration_seconds_sum${labels}`)).toBeCloseTo(0.0123456);
  expect(lines).toEqual([
    {
      level: 'info',
      text: 'run',
      fields: {
        runId: run.runId,
        project: 'demo',
        app: 'hello',
        fn: 'run',
        attempt: 1,
        version: 'v1',
        ended: 'ended',
        state: 'succeeded',
        items: 2,
        bytes: 10,
        runTimeMs: 12.35,
      },
    },
  ]);
});

test.each([
  [{ ended: 'requeued', state: 'failed', error: { code: 'replica_crashed', message: 'no' } }, 'requeued', 'info'],
  [{ ended: 'lost' }, 'lost', 'info'],
  [{ state: 'failed', error: { code: 'function_error', message: 'no' } }, 'function_error', 'info'],
  [{ state: 'timed_out', error: { code: 'timed_out', message: 'no' } }, 'timed_out', 'info'],
  [{ state: 'failed', error: { code: 'internal', message: 'no' } }, 'internal', 'error'],
] as [Partial<RunEnded>, string, string][])('%j counts as %s', async (how, code, level) => {
  const { plain, lines, value } = accounts();
  new RunAccount(plain, run).end({ ...succeeded, ...how });
  expect(await value(`inference_proxy_runs_total{project="demo",app="hello",code="${code}"}`)).toBe(1);
  expect(lines.map((line) => line.level)).toEqual([level]);
});

test('the span of an attempt is a child of the call’s span, with an id that the dispatcher computes too', () => {
  const { traced, begun, failed, lines } = accounts();
  const account = new RunAccount(traced, { ...run, attempt: 2, traceparent: call });
  const spanId = runSpanId(run.runId, 2);
  expect(spanId).not.toBe(runSpanId(run.runId, 1));
  expect(begun).toMatchObject([{ name: 'run hello/run', kind: 'consumer', parent: call, spanId }]);
  expect(parseTraceparent(account.traceparent)).toMatchObject({ traceId, spanId });
  account.end({
    ...succeeded,
    state: 'failed',
    error: { code: 'function_error', message: 'hunter2', type: 'ValueError' },
  });
  expect(failed).toEqual(['function_error']);
  expect(lines[0]?.fields).toMatchObject({ traceId });
});

test('without tracing, the trace context of the call is passed on unchanged', () => {
  const { plain } = accounts();
  expect(new RunAccount(plain, { ...run, traceparent: call }).traceparent).toBe(call);
  expect(new RunAccount(plain, run).traceparent).toBeUndefined();
});
