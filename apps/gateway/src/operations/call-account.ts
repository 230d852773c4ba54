// Contract 6: reports calls that have ended: in one log line, in `/metrics` and in a span.
import type { RunId } from '@inference-proxy/contracts';
import {
  type AccountLog,
  Counter,
  DURATION_BUCKETS,
  Gauge,
  Histogram,
  type OpenSpan,
  parseTraceparent,
  type Registry,
  type SpanAttributes,
  type Tracing,
  validTraceparent,
} from '@inference-proxy/platform';
import type { FastifyRequest } from 'fastify';
import type { CallPath } from '../http/request-head.ts';

/** The form of a call: how the caller gets the answer. The label `form` of the metrics. */
export type CallForm = 'sync' | 'stream' | 'async';

/** An app that a worker has announced. Only announced names become labels, so that callers cannot create new series. */
export interface KnownApp {
  readonly project: string;
  readonly app: string;
}

/** Prometheus treats an empty label as an absent label. */
const UNKNOWN_APP: KnownApp = { project: '', app: '' };

/**
 * The metrics of each call. A counter and a histogram together take 1.6 µs a call (measured).
 * Children made beforehand take no less, because prom-client checks and hashes the labels at each use.
 */
export class CallMetrics {
  readonly #calls: Counter<'project' | 'app' | 'form' | 'code'>;
  readonly #duration: Histogram<'project' | 'app' | 'form'>;
  readonly #firstItem: Histogram<'project' | 'app'>;
  readonly #open: Gauge<'form'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#calls = new Counter({
      name: 'inference_proxy_calls_total',
      help: 'Calls that were answered; code is an error code, ok, or gone if the caller disconnected first',
      labelNames: ['project', 'app', 'form', 'code'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'inference_proxy_call_duration_seconds',
      help: 'Time from the request to the end of its answer',
      labelNames: ['project', 'app', 'form'],
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.#firstItem = new Histogram({
      name: 'inference_proxy_time_to_first_item_seconds',
      help: 'Time from the request of a stream to its first item',
      labelNames: ['project', 'app'],
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.#open = new Gauge({
      name: 'inference_proxy_open_calls',
      help: 'Calls under way at this gateway',
      labelNames: ['form'],
      registers,
    });
    for (const form of ['sync', 'stream', 'async'] as const) this.#open.set({ form }, 0);
  }

  /** @param before the form that was counted until now */
  begun(form: CallForm, before?: CallForm): void {
    if (before !== undefined) this.#open.dec({ form: before });
    this.#open.inc({ form });
  }

  firstItem({ project, app }: KnownApp, seconds: number): void {
    this.#firstItem.observe({ project, app }, seconds);
  }

  /** @param begun whether `begun` was called. An invalid call has no form and counts as `sync` */
  ended({ project, app }: KnownApp, form: CallForm, code: string, seconds: number, begun: boolean): void {
    this.#calls.inc({ project, app, form, code });
    this.#duration.observe({ project, app, form }, seconds);
    if (begun) this.#open.dec({ form });
  }
}

/** How a call ended, as its log line reports it. */
export interface CallEnd {
  readonly status: number | 'gone';
  /** Id of the run that answers, if an earlier call created it. */
  readonly replayedRun?: string;
  /** Error code, if the call failed. */
  readonly code?: string;
  readonly items?: number;
}

export interface AccountParts {
  readonly metrics: CallMetrics;
  readonly tracing: Tracing | undefined;
  readonly log: AccountLog;
}

/** The account of one call, beginning with its request. */
export class CallAccount {
  /** `performance.now()` when the request arrived. */
  readonly startedAt = performance.now();
  /** The trace context for the run and its webhook: this call's span, or the caller's span if tracing is off. */
  readonly traceparent: string | undefined;
  readonly #runId: RunId;
  readonly #path: CallPath;
  readonly #span: OpenSpan | undefined;
  #app = UNKNOWN_APP;
  #fn: string;
  #form: CallForm | undefined;
  #firstItemMs: number | undefined;

  readonly #parts: AccountParts;

  constructor(parts: AccountParts, request: FastifyRequest<{ Params: CallPath }>) {
    this.#parts = parts;

    const { id, params, method, routeOptions, headers } = request;
    this.#runId = id;
    this.#path = params;
    this.#fn = params.function;
    const { traceparent } = headers;
    // An invalid header is ignored (W3C Trace Context). Node joins two headers into one invalid header.
    const callers = validTraceparent(typeof traceparent === 'string' ? traceparent : undefined);
    this.#span = parts.tracing?.start({
      name: `${method} ${routeOptions.url}`,
      kind: 'server',
      parent: callers,
      attributes: { 'http.request.method': method, 'http.route': routeOptions.url, 'inference_proxy.run_id': id },
    });
    this.traceparent = this.#span?.traceparent ?? callers;
  }

  /** Counts the call as valid. Called again if the body asks for another form than the head. */
  begun(form: CallForm): void {
    if (form === this.#form) return;
    this.#parts.metrics.begun(form, this.#form);
    this.#form = form;
  }

  /** Records that the call's app exists. @param fn the function, or the path below the app's own server */
  known(fn: string): void {
    this.#app = this.#path;
    this.#fn = fn;
  }

  readonly firstItem = (): void => {
    if (this.#firstItemMs !== undefined) return;
    this.#firstItemMs = this.#elapsedMs();
    this.#parts.metrics.firstItem(this.#app, this.#firstItemMs / 1000);
  };

  /** Reports the end: the call is answered, or its caller has disconnected. */
  end(answered: CallEnd): void {
    const { status, code = status === 'gone' ? 'gone' : 'ok', items } = answered;
    const ms = this.#elapsedMs();
    // Only an app that exists can fail to start.
    const app: KnownApp = code === 'app_failed_to_start' ? this.#path : this.#app;
    this.#parts.metrics.ended(app, this.#form ?? 'sync', code, ms / 1000, this.#form !== undefined);
    const { project, app: name } = this.#path;
    const traceId = parseTraceparent(this.traceparent)?.traceId;
    this.#parts.log.info(
      {
        runId: this.#runId,
        ...(traceId !== undefined && { traceId }),
        project,
        app: name,
        function: this.#fn,
        ...answered,
        ...(this.#firstItemMs !== undefined && { firstItemMs: tenths(this.#firstItemMs) }),
        ms: tenths(ms),
      },
      'call',
    );
    this.#span?.end(
      {
        ...named(this.#app, this.#fn),
        'http.response.status_code': status === 'gone' ? undefined : status,
        'inference_proxy.form': this.#form,
        'inference_proxy.items': items,
        'inference_proxy.replayed_run_id': answered.replayedRun,
      },
      // A caller that disconnected or asked for an unknown thing is no failure of this server (HTTP semantic conventions).
      (status !== 'gone' && status >= 500) || (status === 200 && answered.code !== undefined)
        ? (answered.code ?? String(status))
        : undefined,
    );
  }

  #elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;

const named = ({ project, app }: KnownApp, fn: string): SpanAttributes =>
  app === '' ? {} : { 'inference_proxy.project': project, 'inference_proxy.app': app, 'inference_proxy.function': fn };
