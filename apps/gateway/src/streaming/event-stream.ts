// Contract 3: a run's entries as a reply. The one seam where RxJS is used.
import type { ServerResponse } from 'node:http';
import { type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { RunEvent, RunReader } from '@inference-proxy/store';
import { Subscription, takeWhile, tap } from 'rxjs';
import type { Interruption, OpenCall } from '../calls/departure.ts';
import { asServiceError, fieldsOf, SERVER } from '../http/answer.ts';
import { GzipMember } from './gzip-member.ts';
import type { KeepAlive, Quiet } from './keep-alive.ts';
import { encodeError, encodeItems, encodeResult, keepAliveComment } from './sse-encoding.ts';

export interface StreamOptions {
  /** `performance.now()` when the request came. */
  readonly startedAt: number;
  readonly gzip: boolean;
  readonly preformatted: boolean;
  /** How long the status line is held back, ms. */
  readonly commitMs: number;
  /** Where nothing has come by then and the status line is still held back, the caller is answered without a stream, ms. */
  readonly waitMs?: number;
}

/**
 * How a stream ended.
 *
 * - `complete`: every event is written
 * - `failed`: the status line was out, so the failure is its last event
 * - `early`: nothing is written yet; the caller of `run` answers with the real status
 * - `gone`: nobody reads any more
 * - `waited`: nothing came within `waitMs`, and nothing is written; the caller of `run` answers
 */
export type StreamEnd =
  | { readonly how: 'complete' | 'gone' | 'waited' }
  | { readonly how: 'failed'; readonly error: ServiceError | undefined; readonly outcome?: Outcome }
  | { readonly how: 'early'; readonly outcome: Outcome }
  | { readonly how: 'early'; readonly error: ServiceError };

const NULL = Buffer.from('null');

/** One streamed reply. Written to only while its socket takes it: a slow reader costs its cursor, not a buffer. */
export class EventStream implements Quiet {
  quietTicks = 0;
  #committed = false;
  #outcome: Outcome | undefined;
  #subscription = Subscription.EMPTY;
  #commitTimer: NodeJS.Timeout | undefined;
  readonly #gzip: GzipMember | undefined;
  readonly #end = Promise.withResolvers<StreamEnd>();

  constructor(
    private readonly raw: ServerResponse,
    private readonly reader: RunReader,
    private readonly keepAlives: KeepAlive,
    private readonly options: StreamOptions,
  ) {
    this.#gzip = options.gzip ? new GzipMember() : undefined;
  }

  /** Writes the run's events until its end, or until the call is interrupted. */
  run(call: OpenCall): Promise<StreamEnd> {
    const { commitMs, waitMs = Number.POSITIVE_INFINITY } = this.options;
    this.#commitTimer =
      waitMs < commitMs ? setTimeout(this.#leaveEmpty, waitMs) : setTimeout(this.#commitEmpty, commitMs);
    call.onInterrupt(this.#interrupted);
    if (call.interruption === undefined) this.#pull();
    return this.#end.promise;
  }

  /** A slow reader has bytes to take; it needs no comment. */
  keepAlive(): void {
    if (!this.raw.writableNeedDrain) this.#write(keepAliveComment);
  }

  readonly #pull = (): void => {
    this.#subscription = this.reader
      .events()
      .pipe(
        tap((event) => this.#take(event)),
        // Strict pull: what does not fit stays in the log, and is read from there when the socket has drained.
        takeWhile(() => !this.raw.writableNeedDrain),
      )
      .subscribe({ complete: this.#paused, error: this.#failed });
  };

  #take(event: RunEvent): void {
    if (event.type === 'outcome') {
      this.#outcome = event.outcome;
      return;
    }
    this.#commit();
    this.#write(encodeItems(event.batch, this.options.preformatted));
  }

  /** The run's entries end, or the socket is full. */
  readonly #paused = (): void => {
    const outcome = this.#outcome;
    if (outcome === undefined) this.raw.once('drain', this.#pull);
    else if (outcome.error) this.#fail(outcome.error, { outcome });
    else {
      this.#commit();
      if (!outcome.streamed) this.#write(encodeResult(outcome.result ?? NULL, this.options.preformatted));
      this.#close({ how: 'complete' });
    }
  };

  readonly #failed = (thrown: unknown): void => {
    const error = asServiceError(thrown);
    this.#fail(fieldsOf(error), { error });
  };

  readonly #interrupted = (why: Interruption): void => {
    this.#subscription.unsubscribe();
    this.raw.off('drain', this.#pull);
    if (why === 'gone') this.#settle({ how: 'gone' });
    else this.#fail(fieldsOf(why), { error: why });
  };

  #fail(
    fields: Parameters<typeof encodeError>[1],
    cause: { readonly outcome: Outcome } | { readonly error: ServiceError },
  ): void {
    if (!this.#committed) {
      this.#settle({ how: 'early', ...cause });
      return;
    }
    this.#write(encodeError(this.reader.runId, fields));
    this.#close({ how: 'failed', error: undefined, ...cause });
  }

  #close(end: StreamEnd): void {
    this.raw.end(this.#gzip?.trailer());
    this.#settle(end);
  }

  #settle(end: StreamEnd): void {
    clearTimeout(this.#commitTimer);
    this.keepAlives.delete(this);
    this.#end.resolve(end);
  }

  #write(events: Buffer): void {
    this.quietTicks = 0;
    if (this.raw.destroyed) return;
    this.raw.write(this.#gzip ? this.#gzip.block(events) : events);
  }

  readonly #commitEmpty = (): void => {
    this.#commit();
    this.raw.flushHeaders();
  };

  readonly #leaveEmpty = (): void => {
    this.#subscription.unsubscribe();
    this.#settle({ how: 'waited' });
  };

  #commit(): void {
    if (this.#committed) return;
    this.#committed = true;
    clearTimeout(this.#commitTimer);
    this.keepAlives.add(this);
    this.raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-request-id': this.reader.runId,
      vary: 'Accept-Encoding',
      'x-accel-buffering': 'no',
      server: SERVER,
      'x-envoy-upstream-service-time': Math.round(performance.now() - this.options.startedAt),
      ...(this.#gzip && { 'content-encoding': 'gzip' }),
    });
    if (this.#gzip) this.raw.write(this.#gzip.head);
  }
}
