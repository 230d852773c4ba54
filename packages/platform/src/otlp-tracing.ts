// Contract 6: exports spans with OpenTelemetry's tracer over OTLP/HTTP. Imported only if tracing is on, because the import takes 90 ms.
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
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`: the URL of the collector, without the path of the signal. */
  readonly endpoint: string;
  /** `OTEL_EXPORTER_OTLP_HEADERS`: the headers of every batch. */
  readonly headers: Readonly<Record<string, string>>;
  /** The traced fraction of the calls whose caller made no sampling decision. */
  readonly ratio: number;
  /** `gateway`, `worker` or `dispatcher`. */
  readonly service: string;
  readonly logger: Logger;
}

const KINDS = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT } as const;
const EXPORT_MS = 1000;
/** The largest number of waiting spans; later spans are dropped. This bounds the memory while a collector is away. */
const MOST_WAITING = 8192;
const BATCH = 512;
/** Limits the log lines, because every lost batch reports an error. */
const TELL_EVERY_MS = 30_000;
/** Shorter than the phase `flush` of a stop, so that a stop does not fail because the collector is away. */
const STOP_MS = 1500;

/** Generates OpenTelemetry's ids, except for a span with a given id. */
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

/** Opens tracing. It never throws and never waits: while a collector is away, the log reports it and calls continue. */
export function otlpTracing({ endpoint, headers, ratio, service, logger }: OtlpOptions): Tracing {
  let toldAt = Number.NEGATIVE_INFINITY;
  const logProblem = (text: string): void => {
    if (performance.now() - toldAt < TELL_EVERY_MS) return;
    toldAt = performance.now();
    logger.warn({ reason: text.slice(0, 500) }, 'spans were not sent to the collector and are lost');
  };
  diag.setLogger(
    { error: logProblem, warn: logProblem, info: () => {}, debug: () => {}, verbose: () => {} },
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
      await Promise.race([provider.shutdown().catch((error: unknown) => logProblem(String(error))), late.promise]);
      clearTimeout(timer);
    },
  };
}
