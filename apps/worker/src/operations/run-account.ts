// Contract 6: reports an attempt of a run with a log line, metrics and a span.
import type { EndState, ErrorFields } from '@inference-proxy/contracts';
import { type AccountLog, type OpenSpan, parseTraceparent, runSpanId, type Tracing } from '@inference-proxy/platform';
import type { TakenRun } from '@inference-proxy/store';
import type { Ended } from '../execution/end-run.ts';
import { withoutTraceback } from '../runtimes/app-log.ts';
import type { RunMetrics } from './run-metrics.ts';

export interface RunAccountParts {
  readonly metrics: RunMetrics;
  readonly tracing: Tracing | undefined;
  readonly log: AccountLog;
}

/** A run without its parameters. They may be megabytes and are not kept while the run lasts. */
export type RunNames = Omit<TakenRun, 'params'>;

/** The end of an attempt. */
export interface RunEnded {
  readonly version: string | undefined;
  /** The result of ending the run in the store. */
  readonly ended: Ended;
  readonly state: EndState;
  readonly items: number;
  readonly bytes: number;
  /** Time in the function, milliseconds. */
  readonly runTimeMs: number;
  readonly error?: ErrorFields | undefined;
}

/** Accounts for an attempt from its take to its end. */
export class RunAccount {
  /** The trace context for the function and the delivery: the function's span, or the call's context if tracing is off. */
  readonly traceparent: string | undefined;
  readonly #span: OpenSpan | undefined;

  readonly #parts: RunAccountParts;
  readonly #run: RunNames;

  constructor(parts: RunAccountParts, run: RunNames) {
    this.#parts = parts;
    this.#run = run;

    const { project, app, fn, runId, attempt, traceparent } = run;
    this.#span = parts.tracing?.start({
      name: `run ${app}/${fn}`,
      kind: 'consumer',
      parent: traceparent,
      spanId: runSpanId(runId, attempt),
      attributes: {
        'inference_proxy.run_id': runId,
        'inference_proxy.project': project,
        'inference_proxy.app': app,
        'inference_proxy.function': fn,
        'inference_proxy.attempt': attempt,
      },
    });
    this.traceparent = this.#span?.traceparent ?? traceparent;
    parts.metrics.begun(run);
  }

  items(count: number): void {
    this.#parts.metrics.items(this.#run, count);
  }

  end({ version, ended, state, items, bytes, runTimeMs, error }: RunEnded): void {
    const run = this.#run;
    const parts = this.#parts;
    const { runId, project, app, fn, attempt } = run;
    parts.metrics.ended(run, codeOf(ended, error), runTimeMs / 1000);
    const traceId = parseTraceparent(this.traceparent)?.traceId;
    const line = {
      runId,
      ...(traceId !== undefined && { traceId }),
      project,
      app,
      fn,
      attempt,
      version,
      ended,
      state,
      items,
      bytes,
      runTimeMs: Math.round(runTimeMs * 100) / 100,
      ...(error && { error: withoutTraceback(error) }),
    };
    if (error?.code === 'internal') parts.log.error(line, 'run');
    else parts.log.info(line, 'run');
    this.#span?.end(
      {
        'inference_proxy.version': version,
        'inference_proxy.state': state,
        'inference_proxy.items': items,
        'inference_proxy.ended': ended,
      },
      error?.code,
    );
  }
}

const codeOf = (ended: Ended, error: ErrorFields | undefined): string =>
  ended === 'requeued' || ended === 'lost' ? ended : (error?.code ?? 'ok');
