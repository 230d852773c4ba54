// Contract 3 and 5: writes a run's entries as a streamed answer. LiveResponse pulls the entries through RxJS.
import type { ServerResponse } from 'node:http';
import {
  type ErrorFields,
  type ItemBatch,
  type Outcome,
  resultAsJson,
  type ServiceError,
} from '@inference-proxy/contracts';
import type { GatewayStore, RunReader } from '@inference-proxy/store';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import type { AnswersInFlight } from '../http/answers-in-flight.ts';
import type { OpenCall } from '../http/open-calls.ts';
import { whenSent } from '../http/stored-answer.ts';
import { wholeOutcome } from '../http/stored-result.ts';
import {
  batchOfResult,
  doneData,
  encodedItems,
  encodeEvent,
  errorData,
  lastEventOf,
  logData,
  openingLines,
  startedData,
} from './events.ts';
import {
  type EntryConsumer,
  type KeepAlive,
  LiveResponse,
  type RunEntry,
  type StreamEnd,
  writeEventsHead,
} from './live-response.ts';
import type { StreamForm } from './stream-form.ts';

/** The parts of a call protocol that a stream needs. */
export interface StreamProtocol {
  /** Returns the `error` object of a failure. */
  error(fields: ErrorFields): object;
  /** Returns the bytes that follow the last event of a complete stream. `lastEvent` is the end of that event. */
  closing?(lastEvent: Buffer): Buffer | undefined;
}

export interface StreamOptions {
  /** `performance.now()` when the request arrived. */
  readonly startedAt: number;
  /** Called for every entry with items. Only the first call counts. */
  readonly onItems?: () => void;
  readonly gzip: boolean;
  readonly form: StreamForm;
  readonly preformatted: boolean;
  /** The form of errors and of the end. */
  readonly protocol: StreamProtocol;
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

/** Writes one streamed answer only while its socket accepts bytes. A slow reader therefore costs a cursor, not a buffer. */
export class EventStream implements EntryConsumer {
  /** The last bytes of events that were written. */
  #last: Buffer = Buffer.alloc(0);
  /** Number of the event after which the stream begins. */
  readonly #from: number;
  readonly #response: LiveResponse;

  readonly #reader: RunReader;
  readonly #options: StreamOptions;

  constructor(raw: ServerResponse, reader: RunReader, keepAlives: KeepAlive, options: StreamOptions) {
    this.#reader = reader;
    this.#options = options;

    this.#response = new LiveResponse(raw, reader, keepAlives, this);
    this.#from = reader.cursor;
  }

  /** Writes the run's events until its end, or until the call is interrupted. */
  run(call: OpenCall): Promise<StreamEnd> {
    const { commitMs, waitMs = Number.POSITIVE_INFINITY, form } = this.#options;
    if (waitMs < commitMs) this.#response.unlessOpenAfter(waitMs, () => this.#response.leave({ how: 'waited' }));
    else this.#response.unlessOpenAfter(commitMs, this.#openEmpty);
    return this.#response.run(call, () => {
      // The queued state and the end are both events. If the caller waits for a limited time only, `queued` is written with the next event.
      if (form === 'rich' && waitMs === Number.POSITIVE_INFINITY) this.#openEmpty();
    });
  }

  next(entry: RunEntry): void {
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
      if (this.#response.isSettled) return;
      this.#finish(whole);
      await whenSent(raw);
    });
  }

  #finish(outcome: Outcome): void {
    const { form, resumed } = this.#options;
    const last = lastEventOf(outcome, form);
    const isLeft = this.#reader.cursor < last;
    if (resumed && !isLeft && !this.#response.isOpen) {
      this.#response.settle({ how: 'complete' });
    } else if (outcome.error) {
      // This event is also sent if the store has lost its last writes, and the reader has a higher number than the failure.
      if (resumed) this.#open();
      this.#fail(outcome.error, last, { outcome });
    } else {
      // The event is made before the head is written, so that an error here has its real status.
      const event = isLeft ? this.#encoded(batchOfResult(resultAsJson(outcome, []))) : undefined;
      this.#open();
      if (event) this.#write(event);
      if (form === 'rich') this.#write(encodeEvent('done', doneData(this.#reader.runId, outcome), last));
      const closing = this.#options.protocol.closing?.(this.#last);
      if (closing) this.#response.write(closing);
      this.#response.end({ how: 'complete' });
    }
  }

  fail(thrown: unknown): void {
    const error = asServiceError(thrown);
    // The run may continue. This event has the number of the last item, so that the reader can resume after it.
    this.#fail(fieldsOf(error), this.#reader.cursor, { error });
  }

  #fail(
    fields: ErrorFields,
    id: number,
    cause: { readonly outcome: Outcome } | { readonly error: ServiceError },
  ): void {
    if (!this.#response.isOpen) {
      this.#response.settle({ how: 'early', ...cause });
      return;
    }
    const { form, protocol } = this.#options;
    const data = errorData(this.#reader.runId, protocol.error(fields));
    this.#write(encodeEvent('error', data, form === 'plain' ? undefined : id));
    this.#response.end({ how: 'failed', error: undefined, ...cause });
  }

  #encoded(batch: ItemBatch): Buffer {
    return encodedItems(batch, this.#options.form, this.#options.preformatted);
  }

  #write(events: Buffer): void {
    this.#open();
    this.#last = events;
    this.#response.write(events);
  }

  /** Writes the status line before the first event. */
  readonly #openEmpty = (): void => {
    this.#open();
    this.#response.raw.flushHeaders();
  };

  #open(): void {
    if (this.#response.isOpen) return;
    const { form, resumed, startedAt, gzip } = this.#options;
    const { runId } = this.#reader;
    writeEventsHead(this.#response.raw, { requestId: resumed?.requestId ?? runId, startedAt, gzip });
    this.#response.open({ gzip, comments: true });
    if (form !== 'plain') this.#response.write(openingLines(this.#from));
    if (form === 'rich' && resumed?.from !== 'event') {
      this.#response.write(encodeEvent('queued', { run_id: runId }, 0));
    }
  }
}
