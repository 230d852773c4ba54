// Contract 6: sends spans over OTLP/HTTP to a real listener.
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Collector, collector, rawReceiver } from '@inference-proxy/test/receiver';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createLogger } from './logging.ts';
import { otlpTracing } from './otlp-tracing.ts';
import { parseTraceparent } from './traceparent.ts';
import { runSpanId, type Tracing } from './tracing.ts';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const lines: Record<string, unknown>[] = [];
const logger = createLogger({ name: 'test', destination: { write: (line) => void lines.push(JSON.parse(line)) } });

let sink: Collector;
const open: Tracing[] = [];
beforeEach(async () => {
  lines.length = 0;
  sink = await collector();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((tracing) => tracing.stop()));
  await sink.close();
});

function tracingTo(endpoint: string, ratio = 1): Tracing {
  const tracing = otlpTracing({ endpoint, headers: { 'x-api-key': 'a key' }, ratio, service: 'gateway', logger });
  open.push(tracing);
  return tracing;
}

test('a span is sent with service, kind, attributes and parent', async () => {
  const tracing = tracingTo(`${sink.endpoint}/`);
  const span = tracing.start({
    name: 'POST /v4',
    kind: 'server',
    parent: `00-${trace}-00f067aa0ba902b7-01`,
    attributes: { 'http.request.method': 'POST', left: undefined },
  });
  expect(parseTraceparent(span.traceparent)).toMatchObject({ traceId: trace, sampled: true });
  span.end({ 'http.response.status_code': 502 }, 'worker_lost');
  await tracing.stop();
  const [sent] = sink.spans;
  expect(sink.heads[0]?.['x-api-key']).toBe('a key');
  expect(sink.spans).toHaveLength(1);
  expect(sent).toMatchObject({
    service: 'gateway',
    name: 'POST /v4',
    kind: 2,
    traceId: trace,
    spanId: parseTraceparent(span.traceparent)?.spanId,
    parentSpanId: '00f067aa0ba902b7',
    status: 2,
    attributes: { 'http.request.method': 'POST', 'http.response.status_code': 502, 'error.type': 'worker_lost' },
  });
  expect(sent?.attributes).not.toHaveProperty('left');
});

test('a given span id is used for that span only', async () => {
  const tracing = tracingTo(sink.endpoint);
  const spanId = runSpanId('0199f0a0-0000-7000-8000-000000000001', 1);
  expect(spanId).toMatch(/^[0-9a-f]{16}$/);
  const named = tracing.start({ name: 'run', kind: 'consumer', spanId, attributes: {} });
  const other = tracing.start({ name: 'POST', kind: 'client', parent: named.traceparent, attributes: {} });
  other.end({});
  named.end({});
  await tracing.stop();
  expect(sink.spans.map(({ name, kind, parentSpanId }) => [name, kind, parentSpanId])).toEqual([
    ['POST', 3, spanId],
    ['run', 5, undefined],
  ]);
  expect(sink.spans[0]?.spanId).not.toBe(spanId);
});

test('a span that the caller does not sample is passed on and not sent; the ratio decides if the caller did not', async () => {
  const tracing = tracingTo(sink.endpoint, 0);
  const unsampled = tracing.start({
    name: 'a',
    kind: 'server',
    parent: `00-${trace}-00f067aa0ba902b7-00`,
    attributes: {},
  });
  expect(parseTraceparent(unsampled.traceparent)).toMatchObject({ traceId: trace, sampled: false });
  const undecided = tracing.start({ name: 'b', kind: 'server', attributes: {} });
  expect(parseTraceparent(undecided.traceparent)).toMatchObject({ sampled: false });
  const sampled = tracing.start({
    name: 'c',
    kind: 'server',
    parent: `00-${trace}-00f067aa0ba902b7-01`,
    attributes: {},
  });
  for (const span of [unsampled, undecided, sampled]) span.end({});
  await tracing.stop();
  expect(sink.spans.map(({ name }) => name)).toEqual(['c']);
});

test('spans are sent within seconds, without a stop', async () => {
  tracingTo(sink.endpoint).start({ name: 'a', kind: 'server', attributes: {} }).end({});
  while (sink.spans.length === 0) await pause(20);
});

test('the log reports once that a collector accepts no spans', async () => {
  // The collector answers 404 at this path.
  const tracing = tracingTo(`${sink.endpoint}/elsewhere`);
  const send = () => tracing.start({ name: 'a', kind: 'server', attributes: {} }).end({});
  send();
  while (lines.length === 0) await pause(20);
  send();
  await tracing.stop();
  expect(lines).toMatchObject([{ msg: 'spans were not sent to the collector and are lost', level: 40 }]);
});

test('a stop does not wait for a collector beyond its phase', async () => {
  const sockets: Socket[] = [];
  const hanging = await rawReceiver((socket) => void sockets.push(socket));
  const tracing = tracingTo(`http://127.0.0.1:${hanging.port}`);
  tracing.start({ name: 'a', kind: 'server', attributes: {} }).end({});
  await tracing.stop();
  // The collector has not answered, and the exporter has not given up; both would write a log line.
  expect(lines).toEqual([]);
  // The exporter does not retry a refusal, so the test leaves no work behind.
  for (const socket of sockets) socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n');
  while (lines.length === 0) await pause(20);
  await hanging.close();
});
