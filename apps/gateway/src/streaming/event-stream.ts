// Contract 3 and 5: a run's entries as a reply. The one seam where RxJS is used.
import type { ServerResponse } from 'node:http';
import {
  type ErrorFields,
  type ItemBatch,
  type Outcome,
  resultAsJson,
  type ServiceError,
} from '@inference-proxy/contracts';
import type { GatewayStore, RunReader } from '@inference-proxy/store';
import type { Interruption, OpenCall } from '../calls/departure.ts';
import type { Surface } from '../calls/surface.ts';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import type { AnswersInFlight } from '../http/answers-in-flight.ts';
import { taken } from '../http/stored-answer.ts';
import { wholeOutcome } from '../runs/stored-result.ts';
import { encodedItems } from './encoded-items.ts';
import { EntryPull, type EntryTaker, type RunEntry } from './entry-pull.ts';
import { doneData, logData, startedData } from './full-events.ts';
import type { KeepAlive } from './keep-alive.ts';
import { lastEventOf } from './last-event.ts';
import { openingLines } from './resume-point.ts';
import { batchOfResult, encodeEvent, errorData } from './sse-encoding.ts';
import type { StreamForm } from './stream-form.ts';
import { StreamResponse } from './stream-response.ts';

export interface StreamOptions {
  /** `performance.now()` when the request came. */
  readonly startedAt: number;
  /** Told of every entry with items, the first of which counts. */
  readonly onItems?: () => void;
  readonly gzip: boolean;
  readonly form: StreamForm;
  readonly preformatted: boolean;
  /** Whose terms it speaks beside the items. */
  readonly surface: Pick<Surface, 'error' | 'closing'>;
  /** How long the status line is held back, ms. */
  readonly commitMs: number;
  /** Where a large plain value is read from, when there is room for it. */
  readonly store: GatewayStore;
  readonly answers: AnswersInFlight;
  /** Where nothing has come by then and the status line is still held back, the caller is answered without a stream, ms. */
  readonly waitMs?: number;
  /** The request resumes a run that exists, from its start or after an item. `requestId` is for the `X-Request-Id`. Absent: this answers the run's call. */
  readonly resumed?: { readonly requestId: string; readonly from: 'start' | 'event' };
}

/**
 * How a stream ended.
 *
 * - `complete`: every event is written. Where a run was taken up again there may have been none: then the status line is not written either, and
 *   the caller of `run` answers
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

/** One streamed reply. Written to only while its socket takes it: a slow reader costs its cursor, not a buffer. */
export class EventStream implements EntryTaker {
  /** The events written last. */
  #last: Buffer = Buffer.alloc(0);
  readonly #pull: EntryPull;
  /** Number of the event that the stream begins after. */
  readonly #from: number;
  #commitTimer: NodeJS.Timeout | undefined;
  #settled = false;
  readonly #response: StreamResponse;
  readonly #end = Promise.withResolvers<StreamEnd>();

  constructor(
    raw: ServerResponse,
    private readonly reader: RunReader,
    keepAlives: KeepAlive,
    private readonly options: StreamOptions,
  ) {
    const { startedAt, gzip, resumed } = options;
    const requestId = resumed?.requestId ?? reader.runId;
    this.#response = new StreamResponse(raw, keepAlives, { requestId, startedAt, gzip });
    this.#pull = new EntryPull(raw, reader, this);
    this.#from = reader.cursor;
  }

  /** Writes the run's events until its end, or until the call is interrupted. */
  run(call: OpenCall): Promise<StreamEnd> {
    const { commitMs, waitMs = Number.POSITIVE_INFINITY, form } = this.options;
    this.#commitTimer =
      waitMs < commitMs ? setTimeout(this.#leaveEmpty, waitMs) : setTimeout(this.#commitEmpty, commitMs);
    call.onInterrupt(this.#interrupted);
    call.onProbe(() => this.#response.keepAlive());
    if (call.interruption !== undefined) return this.#end.promise;
    // That the run is queued is an event already, and its end will be one; who waits only so long is told with the next one.
    if (form === 'full' && waitMs === Number.POSITIVE_INFINITY) this.#commitEmpty();
    this.#pull.start();
    return this.#end.promise;
  }

  take(entry: RunEntry): void {
    const { runId, cursor } = this.reader;
    switch (entry.type) {
      case 'items':
        this.options.onItems?.();
        this.#write(this.#encoded(entry.batch));
        return;
      case 'started':
        if (this.options.resumed?.from !== 'event')
          this.#write(encodeEvent('started', startedData(runId, entry.at), cursor));
        return;
      case 'log':
        this.#write(encodeEvent('log', logData(entry.line), cursor));
    }
  }

  finish(outcome: Outcome): void {
    const { resultBytes } = outcome;
    const isRead = this.reader.cursor >= lastEventOf(outcome, this.options.form);
    if (resultBytes === undefined || isRead) this.#finish(outcome);
    else this.#finishLarge(outcome, resultBytes).catch((thrown: unknown) => this.fail(thrown));
  }

  /** A large plain value is held as it is stored, as an event, and compressed. */
  #finishLarge(outcome: Outcome, bytes: number): Promise<void> {
    const { raw } = this.#response;
    return this.options.answers.hold(raw, 3 * bytes, async () => {
      const whole = await wholeOutcome(this.options.store, this.reader.project, this.reader.runId, outcome);
      if (this.#settled) return;
      this.#finish(whole);
      await taken(raw);
    });
  }

  #finish(outcome: Outcome): void {
    const { form, resumed } = this.options;
    const last = lastEventOf(outcome, form);
    const isLeft = this.reader.cursor < last;
    if (resumed && !isLeft && !this.#response.committed) {
      this.#settle({ how: 'complete' });
    } else if (outcome.error) {
      // Also where the store has lost its last writes, and the failure a number that the reader has gone past.
      if (resumed) this.#commit();
      this.#fail(outcome.error, last, { outcome });
    } else {
      // Made before the head is written: where this fails, the answer has its real status.
      const event = isLeft ? this.#encoded(batchOfResult(resultAsJson(outcome, []))) : undefined;
      this.#commit();
      if (event) this.#write(event);
      if (form === 'full' && !outcome.error)
        this.#write(encodeEvent('done', doneData(this.reader.runId, outcome), last));
      const closing = this.options.surface.closing?.(this.#last);
      if (closing) this.#response.write(closing);
      this.#close({ how: 'complete' });
    }
  }

  fail(thrown: unknown): void {
    const error = asServiceError(thrown);
    // The run may go on: this event has the number of the last item, so that it can be resumed from.
    this.#fail(fieldsOf(error), this.reader.cursor, { error });
  }

  readonly #interrupted = (why: Interruption): void => {
    this.#pull.stop();
    if (why === 'gone') this.#settle({ how: 'gone' });
    else this.fail(why);
  };

  #fail(
    fields: ErrorFields,
    id: number,
    cause: { readonly outcome: Outcome } | { readonly error: ServiceError },
  ): void {
    if (!this.#response.committed) {
      this.#settle({ how: 'early', ...cause });
      return;
    }
    const { form, surface } = this.options;
    const data = errorData(this.reader.runId, surface.error(fields));
    this.#write(encodeEvent('error', data, form === 'plain' ? undefined : id));
    this.#close({ how: 'failed', error: undefined, ...cause });
  }

  #close(end: StreamEnd): void {
    this.#response.end();
    this.#settle(end);
  }

  #settle(end: StreamEnd): void {
    this.#settled = true;
    clearTimeout(this.#commitTimer);
    this.#response.leave();
    this.#end.resolve(end);
  }

  #encoded(batch: ItemBatch): Buffer {
    return encodedItems(batch, this.options.form, this.options.preformatted);
  }

  #write(events: Buffer): void {
    this.#commit();
    this.#last = events;
    this.#response.write(events);
  }

  readonly #commitEmpty = (): void => {
    this.#commit();
    this.#response.flushHead();
  };

  readonly #leaveEmpty = (): void => {
    this.#pull.stop();
    this.#settle({ how: 'waited' });
  };

  #commit(): void {
    if (this.#response.committed) return;
    clearTimeout(this.#commitTimer);
    this.#response.commit();
    const { form, resumed } = this.options;
    if (form !== 'plain') this.#response.write(openingLines(this.#from));
    if (form === 'full' && resumed?.from !== 'event') {
      this.#response.write(encodeEvent('queued', { run_id: this.reader.runId }, 0));
    }
  }
}
