// Contract 4, "Retries": one request and the start of its answer, read from undici's parser events. undici's `request` adds a stream, a signal and
// events to every answer; these cost more than the exchange.
import type { Dispatcher } from 'undici';

export interface ExchangeLimits {
  /** Milliseconds from the start of the exchange to the end of the answer's head. */
  readonly headMs: number;
  /** Milliseconds after the head for the start of the body. The limit is short, because the status alone decides the result. */
  readonly answerMs: number;
  /** The number of body bytes to keep. Later bytes are not read. */
  readonly answerBytes: number;
}

export interface Answer {
  readonly status: number;
  /** Names are in lower case. A repeated header is a list. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body's first bytes. */
  readonly start: Buffer;
  /** Whether `start` is the whole body. The connection can carry another exchange only after a whole body. */
  readonly whole: boolean;
}

/** The head of the answer did not come in time. */
export class HeadTimeout extends Error {
  override readonly name = 'HeadTimeout';
}

const FIRST_FINAL = 200;

/**
 * One exchange. If the body breaks off or exceeds a limit after the head, the answer resolves with the bytes so far and `whole: false`.
 * The caller must then discard the connection.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #limits: ExchangeLimits;
  readonly #settle: { resolve(answer: Answer): void; reject(error: unknown): void };
  readonly #chunks: Buffer[] = [];
  #timer: NodeJS.Timeout;
  #length = 0;
  #status = 0;
  #headers: Answer['headers'] = {};
  #over = false;
  /** Resolves with the answer. If no head arrives, rejects with a HeadTimeout, a ConnectError or an error of undici. */
  readonly answer: Promise<Answer>;

  constructor(limits: ExchangeLimits) {
    this.#limits = limits;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.answer = promise;
    this.#settle = { resolve, reject };
    const { headMs } = limits;
    this.#timer = setTimeout(() => this.#fail(new HeadTimeout(`no answer within ${headMs} ms`)), headMs);
  }

  onRequestStart(): void {}

  onResponseStart(_: unknown, status: number, headers: Answer['headers']): void {
    if (status < FIRST_FINAL || this.#over) return;
    this.#status = status;
    this.#headers = headers;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(false), this.#limits.answerMs);
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    if (this.#over) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length > this.#limits.answerBytes) this.#end(false);
  }

  onResponseEnd(): void {
    this.#end(true);
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#status === 0) this.#fail(error);
    else this.#end(false);
  }

  #end(whole: boolean): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    const start = Buffer.concat(this.#chunks).subarray(0, this.#limits.answerBytes);
    this.#settle.resolve({ status: this.#status, headers: this.#headers, start, whole });
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#settle.reject(error);
  }
}
