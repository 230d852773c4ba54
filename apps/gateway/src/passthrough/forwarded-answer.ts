// Contract 1, "Custom runtimes": writes a run's entries as the answer of the server that produced them.
import type { ServerResponse } from 'node:http';
import {
  type AnswerHead,
  type ErrorFields,
  errorObject,
  type Outcome,
  type ServiceError,
} from '@inference-proxy/contracts';
import { pieceBytes, type RunReader } from '@inference-proxy/store';
import type { ForwardedOptions, LiveAnswer } from '../calls/call-protocol.ts';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import type { OpenCall } from '../http/open-calls.ts';
import { writePieces } from '../http/stored-answer.ts';
import {
  type EntryConsumer,
  type KeepAlive,
  LiveResponse,
  type RunEntry,
  type StreamEnd,
  writeStreamHead,
} from '../streaming/live-response.ts';
import { type HeadRules, putHead } from './answer-head.ts';
import { errorEnding, isStreamed, itemBytes } from './streamed-forms.ts';

const NOTHING = Buffer.alloc(0);

/**
 * One forwarded answer. The head of a stream is written as soon as the server's head arrives.
 * The head of a whole body is written with the body. A body that breaks off is therefore an error with its real status.
 */
export class ForwardedAnswer implements LiveAnswer, EntryConsumer {
  /** Head of a stream, after the head is written. */
  #streaming: AnswerHead | undefined;
  readonly #response: LiveResponse;

  readonly #raw: ServerResponse;
  readonly #reader: RunReader;
  readonly #options: ForwardedOptions & Pick<HeadRules, 'corsIsOurs'>;

  constructor(
    raw: ServerResponse,
    reader: RunReader,
    keepAlives: KeepAlive,
    options: ForwardedOptions & Pick<HeadRules, 'corsIsOurs'>,
  ) {
    this.#raw = raw;
    this.#reader = reader;
    this.#options = options;

    this.#response = new LiveResponse(raw, reader, keepAlives, this);
  }

  run(call: OpenCall): Promise<StreamEnd> {
    const { waitMs } = this.#options;
    if (waitMs !== undefined) this.#response.unlessOpenAfter(waitMs, () => this.#response.leave({ how: 'waited' }));
    return this.#response.run(call);
  }

  next(entry: RunEntry): void {
    if (entry.type === 'head' && isStreamed(entry.head)) this.#begin(entry.head);
    else if (entry.type === 'items' && this.#streaming) {
      this.#options.onItems?.();
      this.#response.write(itemBytes(this.#streaming.form, entry.batch));
    }
  }

  finish(outcome: Outcome): void {
    const { error, head } = outcome;
    if (error) this.#fail(error, { outcome });
    else if (this.#streaming) this.#response.end({ how: 'complete' });
    else if (head && outcome.resultBytes !== undefined && !this.#isBodiless(head))
      void this.#large(head, outcome.resultBytes);
    else if (head) this.#whole(head, outcome.result ?? NOTHING);
    else this.#response.settle({ how: 'early', outcome });
  }

  fail(thrown: unknown): void {
    const error = asServiceError(thrown);
    this.#fail(fieldsOf(error), { error });
  }

  #begin(head: AnswerHead): void {
    if (this.#streaming) return;
    this.#streaming = head;
    this.#options.onStream();
    putHead(this.#raw, this.#reader.runId, head, { ...this.#options, bodiless: false });
    writeStreamHead(this.#raw, this.#reader.runId);
    // Readers of an event stream ignore comments. Other bodies have no such bytes.
    this.#response.open({ gzip: false, comments: head.form === 'sse' });
    this.#raw.flushHeaders();
  }

  #whole(head: AnswerHead, body: Buffer): void {
    const bodiless = this.#isBodiless(head);
    putHead(this.#raw, this.#reader.runId, head, { ...this.#options, bodiless });
    if (!bodiless) this.#raw.setHeader('content-length', body.length);
    this.#raw.end(bodiless ? undefined : body);
    this.#response.settle({ how: 'complete' });
  }

  /** Returns whether the answer has no body (RFC 9110 §6.4.1). */
  #isBodiless({ status }: AnswerHead): boolean {
    return this.#raw.req.method === 'HEAD' || status === 204 || status === 304;
  }

  /** Writes a large body at the pace of the socket. */
  async #large(head: AnswerHead, bytes: number): Promise<void> {
    const { store, answers } = this.#options;
    const { project, runId } = this.#reader;
    const body = { bytes, heldBytes: pieceBytes(bytes), pieces: () => store.result(project, runId, bytes) };
    const begin = (): void => {
      putHead(this.#raw, runId, head, { ...this.#options, bodiless: false });
      this.#raw.setHeader('content-length', bytes);
    };
    try {
      await answers.hold(this.#raw, body.heldBytes, () => writePieces(this.#raw, body, begin));
      this.#response.settle({ how: this.#raw.writableFinished ? 'complete' : 'gone' });
    } catch (thrown) {
      const error = asServiceError(thrown);
      this.#response.settle(this.#raw.headersSent ? { how: 'failed', error } : { how: 'early', error });
    }
  }

  #fail(fields: ErrorFields, cause: { readonly outcome: Outcome } | { readonly error: ServiceError }): void {
    if (this.#streaming === undefined) {
      this.#response.settle({ how: 'early', ...cause });
      return;
    }
    const words = errorEnding(this.#streaming.form, this.#reader.runId, errorObject(fields));
    const end: StreamEnd = { how: 'failed', error: undefined, ...cause };
    if (words) {
      this.#response.write(words);
      this.#response.end(end);
    } else this.#response.abort(end);
  }
}
