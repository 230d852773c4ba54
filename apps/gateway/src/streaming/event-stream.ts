// Contract 3 and 5: writes a run's entries as a streamed answer. EntryPull (entry-pull.ts) reads them through RxJS.
import type { ServerResponse } from 'node:http';
import {
  type ErrorFields,
  type ItemBatch,
  type Outcome,
  resultAsJson,
  type ServiceError,
} from '@inference-proxy/contracts';
import type { GatewayStore, RunReader } from '@inference-proxy/store';
import type { Surface } from '../calls/surface.ts';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import type { AnswersInFlight } from '../http/answers-in-flight.ts';
import type { Interruption, OpenCall } from '../http/open-calls.ts';
import { taken } from '../http/stored-answer.ts';
import { wholeOutcome } from '../http/stored-result.ts';
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
  /** `performance.now()` when the request arrived. */
  readonly startedAt: number;
  /** Called for every entry with items. Only the first call counts. */
  readonly onItems?: () => void;
  readonly gzip: boolean;
  readonly form: StreamForm;
  readonly preformatted: boolean;
  /** The form of errors and of the end. */
  readonly surface: Pick<Surface, 'error' | 'closing'>;
  /** Longest time for which the status line is held back, ms. */
  readonly commitMs: number;
  /** The store of a large plain value, which is read when there is room for it. */
  readonly store: GatewayStore;
  readonly answers: AnswersInFlight;
  /** After this time (ms) without any byte written, the caller gets an answer without a stream. */
  readonly waitMs?: number;
  /**
   * Set if the request resumes an existing run, from its start or after an item. `requestId` is for the `X-Request-Id`.
   * Absent: this stream answers the run's call.
   */
  readonly resumed?: { readonly requestId: string; readonly from: 'start' | 'event' };
}

/**
 * How a stream ended.
 *
 * - `complete`: every event is written. If a resumed run has no further event, the status line is not written, and
 *   the caller of `run` answers
 * - `failed`: the status line was written, so the failure is the last event
 * - `early`: nothing is written yet; the caller of `run` answers with the real status
 * - `gone`: the reader has disconnected
 * - `waited`: no event arrived within `waitMs`, and nothing is written; the caller of `run` answers
 */
export type StreamEnd =
  | { readonly how: 'complete' | 'gone' | 'waited' }
  | { readonly how: 'failed'; readonly error: ServiceError | undefined; readonly outcome?: Outcome }
  | { readonly how: 'early'; readonly outcome: Outcome }
  | { readonly how: 'early'; readonly error: ServiceError };

/** Writes one streamed answer only while its socket accepts bytes. A slow reader therefore costs a cursor, not a buffer. */
export class EventStream implements EntryTaker {
  /** The last bytes of events that were written. */
  #last: Buffer = Buffer.alloc(0);
  readonly #pull: EntryPull;
  /** Number of the event after which the stream begins. */
  readonly #from: number;
  #commitTimer: NodeJS.Timeout | undefined;
  #settled = false;
  readonly #response: StreamResponse;
  readonly #end = Promise.withResolvers<StreamEnd>();

  readonly #reader: RunReader;
  readonly #options: StreamOptions;

  constructor(raw: ServerResponse, reader: RunReader, keepAlives: KeepAlive, options: StreamOptions) {
    this.#reader = reader;
    this.#options = options;

    const { startedAt, gzip, resumed } = options;
    const requestId = resumed?.requestId ?? reader.runId;
    this.#response = new StreamResponse(raw, keepAlives, { requestId, startedAt, gzip });
    this.#pull = new EntryPull(raw, reader, this);
    this.#from = reader.cursor;
  }

  /** Writes the run's events until its end, or until the call is interrupted. */
  run(call: OpenCall): Promise<StreamEnd> {
    const { commitMs, waitMs = Number.POSITIVE_INFINITY, form } = this.#options;
    this.#commitTimer =
      waitMs < commitMs ? setTimeout(this.#leaveEmpty, waitMs) : setTimeout(this.#commitEmpty, commitMs);
    call.onInterrupt(this.#interrupted);
    call.onProbe(() => this.#response.keepAlive());
    if (call.interruption !== undefined) return this.#end.promise;
    // The queued state and the end are both events. If the caller waits for a limited time only, `queued` is written with the next event.
    if (form === 'full' && waitMs === Number.POSITIVE_INFINITY) this.#commitEmpty();
    this.#pull.start();
    return this.#end.promise;
  }

  take(entry: RunEntry): void {
    const { runId, cursor } = this.#reader;
    switch (entry.type) {
      case 'items':
        this.#options.onItems?.();
        this.#write(this.#encoded(entry.batch));
        return;
      case 'started':
        if (this.#options.resumed?.from !== 'event')
          this.#write(encodeEvent('started', startedData(runId, entry.at), cursor));
        return;
      case 'log':
        this.#write(encodeEvent('log', logData(entry.line), cursor));
    }
  }

  finish(outcome: Outcome): void {
    const { resultBytes } = outcome;
    const isRead = this.#reader.cursor >= lastEventOf(outcome, this.#options.form);
    if (resultBytes === undefined || isRead) this.#finish(outcome);
    else this.#finishLarge(outcome, resultBytes).catch((thrown: unknown) => this.fail(thrown));
  }

  /** Sends a large plain value when there is room for three copies: as stored, as an event, and compressed. */
  #finishLarge(outcome: Outcome, bytes: number): Promise<void> {
    const { raw } = this.#response;
    return this.#options.answers.hold(raw, 3 * bytes, async () => {
      const whole = await wholeOutcome(this.#options.store, this.#reader.project, this.#reader.runId, outcome);
      if (this.#settled) return;
      this.#finish(whole);
      await taken(raw);
    });
  }

  #finish(outcome: Outcome): void {
    const { form, resumed } = this.#options;
    const last = lastEventOf(outcome, form);
    const isLeft = this.#reader.cursor < last;
    if (resumed && !isLeft && !this.#response.committed) {
      this.#settle({ how: 'complete' });
    } else if (outcome.error) {
      // This event is also sent if the store has lost its last writes, and the reader has a higher number than the failure.
      if (resumed) this.#commit();
      this.#fail(outcome.error, last, { outcome });
    } else {
      // The event is made before the head is written, so that an error here has its real status.
      const event = isLeft ? this.#encoded(batchOfResult(resultAsJson(outcome, []))) : undefined;
      this.#commit();
      if (event) this.#write(event);
      if (form === 'full' && !outcome.error)
        this.#write(encodeEvent('done', doneData(this.#reader.runId, outcome), last));
      const closing = this.#options.surface.closing?.(this.#last);
      if (closing) this.#response.write(closing);
      this.#close({ how: 'complete' });
    }
  }

  fail(thrown: unknown): void {
    const error = asServiceError(thrown);
    // The run may continue. This event has the number of the last item, so that the reader can resume after it.
    this.#fail(fieldsOf(error), this.#reader.cursor, { error });
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
    const { form, surface } = this.#options;
    const data = errorData(this.#reader.runId, surface.error(fields));
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
    return encodedItems(batch, this.#options.form, this.#options.preformatted);
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
    const { form, resumed } = this.#options;
    if (form !== 'plain') this.#response.write(openingLines(this.#from));
    if (form === 'full' && resumed?.from !== 'event') {
      this.#response.write(encodeEvent('queued', { run_id: this.#reader.runId }, 0));
    }
  }
}
