// Contract 6: spans from a call to its function to its delivery, where OTEL_EXPORTER_OTLP_ENDPOINT says where they go.
import { createHash } from 'node:crypto';

/** Values by their names in OpenTelemetry's semantic conventions; what is undefined is left out. Never a secret, a body or a whole URL. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'consumer' | 'client';
  /** A valid `traceparent`; absent: the span begins a trace. */
  readonly parent?: string | undefined;
  /** 16 hex digits, where others must be able to name the span before it is told; absent: any. */
  readonly spanId?: string;
  /** Unix milliseconds; absent: now. */
  readonly at?: number;
  readonly attributes: SpanAttributes;
}

/** A span that has begun. */
export interface OpenSpan {
  /** What those are told who go on from here. */
  readonly traceparent: string;
  /**
   * @param failed the class of what went wrong: the span is an error then
   */
  end(attributes: SpanAttributes, failed?: string): void;
}

/** Begins spans; there is none where tracing is off, so that it costs nothing. */
export interface Tracing {
  start(span: SpanStart): OpenSpan;
  /** Sends what is left. Does not reject: spans that cannot be sent are told in the log. */
  stop(): Promise<void>;
}

/**
 * The span of one attempt of a run, as both the worker that runs it and the dispatcher that delivers it name it: so a delivery is
 * a child of the function's span though no word passes between the two.
 *
 * @param attempt from 1
 */
export const runSpanId = (runId: string, attempt: number): string =>
  createHash('sha256').update(`${runId} ${attempt}`).digest('hex').slice(0, 16);
