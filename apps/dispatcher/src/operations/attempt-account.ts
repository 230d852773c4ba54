// Contract 6: an attempt's span and its metrics; its log line is the journey's own (deliveries/deliver.ts).
import { formatTraceparent, type OpenSpan, parseTraceparent, runSpanId, type Tracing } from '@inference-proxy/platform';
import type { AttemptRecord, DeliveryTask } from '../deliveries/records.ts';
import type { DeliveryMetrics } from './delivery-metrics.ts';

export interface AttemptAccountParts {
  readonly metrics: DeliveryMetrics;
  readonly tracing: Tracing | undefined;
}

/** One attempt's account, from just before its POST. */
export class AttemptAccount {
  /** What the receiver is told: this attempt's span, or what the run brought along where there is no tracing. */
  readonly traceparent: string | undefined;
  readonly #span: OpenSpan | undefined;

  constructor(
    private readonly parts: AttemptAccountParts,
    task: DeliveryTask,
    url: URL,
  ) {
    const { runId, project, deliveryId, attempt, endedAt } = task;
    // Of the URL only the receiver's name: its path and query may hold what opens a door.
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
    this.parts.metrics.made(record);
    const failed = errorClass ?? (status !== undefined && status >= 400 ? String(status) : undefined);
    this.#span?.end({ 'http.response.status_code': status, 'network.peer.address': address }, failed);
  }

  /** It could not be made at all: the store did not give what is sent. */
  unmade(): void {
    this.parts.metrics.unmade();
    this.#span?.end({}, 'unavailable');
  }
}

/** The function's span where the run came to one, else the call's. */
function parentOf({ traceparent, runId, runAttempt }: DeliveryTask): string | undefined {
  const call = parseTraceparent(traceparent);
  if (!call || runAttempt === 0) return traceparent;
  return formatTraceparent({ ...call, spanId: runSpanId(runId, runAttempt) });
}
