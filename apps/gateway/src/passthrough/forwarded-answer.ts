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
import type { ForwardedOptions, LiveAnswer } from '../calls/surface.ts';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import { breakOff } from '../http/break-off.ts';
import type { Interruption, OpenCall } from '../http/open-calls.ts';
import { writePieces } from '../http/stored-answer.ts';
import { EntryPull, type EntryTaker, isFull, type RunEntry } from '../streaming/entry-pull.ts';
import type { StreamEnd } from '../streaming/event-stream.ts';
import type { KeepAlive, Quiet } from '../streaming/keep-alive.ts';
import { keepAliveComment } from '../streaming/sse-encoding.ts';
import { type HeadRules, putHead } from './answer-head.ts';
import { isStreamed, itemBytes, lastWords } from './streamed-forms.ts';

const NOTHING = Buffer.alloc(0);

/**
 * One forwarded answer. The head of a stream is written as soon as the server's head arrives.
 * The head of a whole body is written with the body. A body that breaks off is therefore an error with its real status.
 */
export class ForwardedAnswer implements LiveAnswer, EntryTaker, Quiet {
  quietTicks = 0;
  /** Head of a stream, after the head is written. */
  #streaming: AnswerHead | undefined;
  #waiting: NodeJS.Timeout | undefined;
  readonly #pull: EntryPull;
  readonly #end = Promise.withResolvers<StreamEnd>();

  readonly #raw: ServerResponse;
  readonly #reader: RunReader;
  readonly #keepAlives: KeepAlive;
  readonly #options: ForwardedOptions & Pick<HeadRules, 'corsIsOurs'>;

  constructor(
    raw: ServerResponse,
    reader: RunReader,
    keepAlives: KeepAlive,
    options: ForwardedOptions & Pick<HeadRules, 'corsIsOurs'>,
  ) {
    this.#raw = raw;
    this.#reader = reader;
    this.#keepAlives = keepAlives;
    this.#options = options;

    this.#pull = new EntryPull(raw, reader, this);
  }

  run(call: OpenCall): Promise<StreamEnd> {
    const { waitMs } = this.#options;
    if (waitMs !== undefined) this.#waiting = setTimeout(this.#leaveEmpty, waitMs);
    call.onInterrupt(this.#interrupted);
    call.onProbe(this.#probed);
    if (call.interruption === undefined) this.#pull.start();
    return this.#end.promise;
  }

  take(entry: RunEntry): void {
    if (entry.type === 'head' && isStreamed(entry.head)) this.#begin(entry.head);
    else if (entry.type === 'items' && this.#streaming) {
      this.#options.onItems?.();
      this.quietTicks = 0;
      if (!this.#raw.destroyed) this.#raw.write(itemBytes(this.#streaming.form, entry.batch));
    }
  }

  finish(outcome: Outcome): void {
    const { error, head } = outcome;
    if (error) this.#fail(error, { outcome });
    else if (this.#streaming) this.#close();
    else if (head && outcome.resultBytes !== undefined && !this.#isBodiless(head))
      void this.#large(head, outcome.resultBytes);
    else if (head) this.#whole(head, outcome.result ?? NOTHING);
    else this.#settle({ how: 'early', outcome });
  }

  fail(thrown: unknown): void {
    const error = asServiceError(thrown);
    this.#fail(fieldsOf(error), { error });
  }

  /** Writes a comment, which readers of an event stream ignore. Other bodies have no such bytes. */
  keepAlive(): void {
    if (this.#streaming?.form === 'sse' && !isFull(this.#raw)) this.#raw.write(keepAliveComment);
  }

  #begin(head: AnswerHead): void {
    if (this.#streaming) return;
    this.#streaming = head;
    clearTimeout(this.#waiting);
    this.#options.onStream();
    this.#keepAlives.add(this);
    putHead(this.#raw, this.#reader.runId, head, { ...this.#options, bodiless: false });
    // Without this header, proxies before the gateway would buffer the stream.
    if (!this.#raw.hasHeader('x-accel-buffering')) this.#raw.setHeader('x-accel-buffering', 'no');
    this.#raw.flushHeaders();
  }

  #whole(head: AnswerHead, body: Buffer): void {
    const bodiless = this.#isBodiless(head);
    putHead(this.#raw, this.#reader.runId, head, { ...this.#options, bodiless });
    if (!bodiless) this.#raw.setHeader('content-length', body.length);
    this.#raw.end(bodiless ? undefined : body);
    this.#settle({ how: 'complete' });
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
      this.#settle({ how: this.#raw.writableFinished ? 'complete' : 'gone' });
    } catch (thrown) {
      const error = asServiceError(thrown);
      this.#settle(this.#raw.headersSent ? { how: 'failed', error } : { how: 'early', error });
    }
  }

  #close(): void {
    this.#raw.end();
    this.#settle({ how: 'complete' });
  }

  #fail(fields: ErrorFields, cause: { readonly outcome: Outcome } | { readonly error: ServiceError }): void {
    if (this.#streaming === undefined) {
      this.#settle({ how: 'early', ...cause });
      return;
    }
    const words = lastWords(this.#streaming.form, this.#reader.runId, errorObject(fields));
    if (words) this.#raw.end(words);
    else breakOff(this.#raw);
    this.#settle({ how: 'failed', error: undefined, ...cause });
  }

  #settle(end: StreamEnd): void {
    clearTimeout(this.#waiting);
    this.#keepAlives.delete(this);
    this.#end.resolve(end);
  }

  readonly #interrupted = (why: Interruption): void => {
    this.#pull.stop();
    if (why === 'gone') this.#settle({ how: 'gone' });
    else this.fail(why);
  };

  /** The caller closed its side. If no harmless bytes can probe the connection, the caller counts as disconnected. */
  readonly #probed = (): void => {
    if (this.#streaming?.form === 'sse') this.keepAlive();
    else if (this.#streaming) this.#raw.destroy();
  };

  readonly #leaveEmpty = (): void => {
    this.#pull.stop();
    this.#settle({ how: 'waited' });
  };
}
