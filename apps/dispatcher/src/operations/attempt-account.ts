// Contract 6: the span and the metrics of an attempt. deliveries/deliver.ts writes its log line.
import { formatTraceparent, type OpenSpan, parseTraceparent, runSpanId, type Tracing } from '@inference-proxy/platform';
import type { AttemptRecord, DeliveryTask } from '@inference-proxy/store';
import type { DeliveryMetrics } from './delivery-metrics.ts';

export interface AttemptAccountParts {
  readonly metrics: DeliveryMetrics;
  readonly tracing: Tracing | undefined;
}

/** Counts and traces one attempt, from just before its POST. */
export class AttemptAccount {
  /** The `traceparent` header for the receiver: this attempt's span, or the run's context if tracing is off. */
  readonly traceparent: string | undefined;
  readonly #span: OpenSpan | undefined;

  readonly #parts: AttemptAccountParts;

  constructor(parts: AttemptAccountParts, task: DeliveryTask, url: URL) {
    this.#parts = parts;

    const { runId, project, deliveryId, attempt, endedAt } = task;
    // The span has only the host of the URL, because the path and the query may hold credentials.
    this.#span = parts.tracing?.start({
      name: 'POST',
      kind: 'client',
      parent: parentOf(task),
      attributes: {
        'http.request.method': 'POST',
        'http.request.resend_count': attempt - 1,
        'server.address': url.hostname,
        'server.port': Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
        'inference_proxy.run_id': runId,
        'inference_proxy.project': project,
        'inference_proxy.delivery_id': deliveryId,
      },
    });
    this.traceparent = this.#span?.traceparent ?? task.traceparent;
    parts.metrics.begun(attempt === 1 ? endedAt : undefined);
  }

  made(record: AttemptRecord): void {
    const { status, errorClass, address } = record;
    this.#parts.metrics.made(record);
    const failed = errorClass ?? (status !== undefined && status >= 400 ? String(status) : undefined);
    this.#span?.end({ 'http.response.status_code': status, 'network.peer.address': address }, failed);
  }

  /** Ends the span of an attempt that was not made because the store did not return its body. */
  unmade(): void {
    this.#parts.metrics.unmade();
    this.#span?.end({}, 'unavailable');
  }
}

/** Returns the span of the function if the run had an attempt, otherwise the span of the call. */
function parentOf({ traceparent, runId, runAttempt }: DeliveryTask): string | undefined {
  const call = parseTraceparent(traceparent);
  if (!call || runAttempt === 0) return traceparent;
  return formatTraceparent({ ...call, spanId: runSpanId(runId, runAttempt) });
}
