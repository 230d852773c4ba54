// Spans by OpenTelemetry's own tracer and its OTLP/HTTP exporter. Imported only where tracing is on: it is 90 ms of a service's start.
import { hostname } from 'node:os';
import { DiagLogLevel, diag, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  RandomIdGenerator,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from './logging.ts';
import { formatTraceparent, parseTraceparent } from './traceparent.ts';
import type { OpenSpan, SpanStart, Tracing } from './tracing.ts';

export interface OtlpOptions {
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`: the collector, without the path of the signal. */
  readonly endpoint: string;
  /** `OTEL_EXPORTER_OTLP_HEADERS`: sent with every batch. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of the calls whose caller has not decided, the fraction that is traced. */
  readonly ratio: number;
  /** `gateway`, `worker` or `dispatcher`. */
  readonly service: string;
  readonly logger: Logger;
}

const KINDS = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT } as const;
const EXPORT_MS = 1000;
/** Past this many spans that wait to be sent, further ones are dropped: a collector that is away costs memory within this bound. */
const MOST_WAITING = 8192;
const BATCH = 512;
/** Each batch that is lost would say so. */
const TELL_EVERY_MS = 30_000;
/** Less than the stop's phase `flush`: a collector that is away must not make a stop count as failed. */
const STOP_MS = 1500;

/** Ids as OpenTelemetry makes them, unless the next span was given one. */
class Ids extends RandomIdGenerator {
  next: string | undefined;
  readonly #random = this.generateSpanId;

  constructor() {
    super();
    this.generateSpanId = () => {
      const given = this.next ?? this.#random();
      this.next = undefined;
      return given;
    };
  }
}

/** Never throws and never waits: a collector that is away is told of in the log, and calls go on. */
export function otlpTracing({ endpoint, headers, ratio, service, logger }: OtlpOptions): Tracing {
  let toldAt = Number.NEGATIVE_INFINITY;
  const tell = (text: string): void => {
    if (performance.now() - toldAt < TELL_EVERY_MS) return;
    toldAt = performance.now();
    logger.warn({ reason: text.slice(0, 500) }, 'spans were not sent');
  };
  diag.setLogger(
    { error: tell, warn: tell, info: () => {}, debug: () => {}, verbose: () => {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const ids = new Ids();
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': service,
      'service.namespace': 'inference-proxy',
      'service.instance.id': `${hostname()}-${process.pid}`,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    idGenerator: ids,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces`, headers }),
        scheduledDelayMillis: EXPORT_MS,
        maxQueueSize: MOST_WAITING,
        maxExportBatchSize: BATCH,
      }),
    ],
  });
  const tracer = provider.getTracer('inference-proxy');
  return {
    start({ name, kind, parent, spanId, at, attributes }: SpanStart): OpenSpan {
      const from = parseTraceparent(parent);
      const context = from
        ? trace.setSpanContext(ROOT_CONTEXT, {
            traceId: from.traceId,
            spanId: from.spanId,
            traceFlags: from.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
            isRemote: true,
          })
        : ROOT_CONTEXT;
      ids.next = spanId;
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], attributes, ...(at !== undefined && { startTime: at }) },
        context,
      );
      const { traceId, spanId: id, traceFlags } = span.spanContext();
      return {
        traceparent: formatTraceparent({ traceId, spanId: id, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 }),
        end(more, failed) {
          for (const [key, value] of Object.entries(more)) if (value !== undefined) span.setAttribute(key, value);
          if (failed !== undefined) {
            span.setAttribute('error.type', failed);
            span.setStatus({ code: SpanStatusCode.ERROR });
          }
          span.end();
        },
      };
    },
    async stop() {
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, STOP_MS);
      await Promise.race([provider.shutdown().catch((error: unknown) => tell(String(error))), late.promise]);
      clearTimeout(timer);
    },
  };
}
