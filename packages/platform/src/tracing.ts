// Contract 6: the spans of a call, its function and its delivery. Tracing is on if OTEL_EXPORTER_OTLP_ENDPOINT is set.
import { createHash } from 'node:crypto';

/** Values by the names of OpenTelemetry's semantic conventions. Undefined values are dropped. Secrets, bodies and whole URLs are forbidden. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'consumer' | 'client';
  /** A valid `traceparent`. Absent: the span begins a trace. */
  readonly parent?: string | undefined;
  /** 16 hex digits, for a span whose id another process must know beforehand. Absent: a random id. */
  readonly spanId?: string;
  /** Unix milliseconds. Absent: now. */
  readonly at?: number;
  readonly attributes: SpanAttributes;
}

/** A span that has begun. */
export interface OpenSpan {
  /** The trace context for the next service. */
  readonly traceparent: string;
  /** Ends the span. @param failed the class of the error; the span's status is then an error */
  end(attributes: SpanAttributes, failed?: string): void;
}

/** Begins spans. If tracing is off, services have `undefined` instead and pay nothing. */
export interface Tracing {
  start(span: SpanStart): OpenSpan;
  /** Sends the waiting spans. Never rejects: the log reports spans that cannot be sent. */
  stop(): Promise<void>;
}

/**
 * Returns the id of the span of an attempt of a run. The worker and the dispatcher compute the same id without a message,
 * so that a delivery's span is a child of the function's span.
 *
 * @param attempt from 1
 */
export const runSpanId = (runId: string, attempt: number): string =>
  createHash('sha256').update(`${runId} ${attempt}`).digest('hex').slice(0, 16);
