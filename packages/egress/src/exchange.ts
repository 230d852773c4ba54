// webhooks.md "An attempt": one request and the start of its answer, taken as undici's parser hands it out. Its `request` puts a stream, a signal
// and their events around every answer, which cost more than the exchange.
import type { Dispatcher } from 'undici';

export interface ExchangeLimits {
  /** From the start to the end of the answer's head, milliseconds. */
  readonly headMs: number;
  /** After the head, for the start of the body: the status has decided already, so a slow body is not waited for. */
  readonly answerMs: number;
  /** How much of the body is kept; nothing after it is read. */
  readonly answerBytes: number;
}

export interface Answer {
  readonly status: number;
  /** In lower case; a list where a header came more than once. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body's first bytes. */
  readonly start: Buffer;
  /** Whether they are all of it: only then can the connection carry another exchange. */
  readonly whole: boolean;
}

/** The head of the answer did not come in time. */
export class HeadTimeout extends Error {
  override readonly name = 'HeadTimeout';
}

const FIRST_FINAL = 200;

/** An exchange under way. What breaks off or dawdles after its head is cut where it stands; whoever began it gives its connection up then. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #limits: ExchangeLimits;
  readonly #settle: { resolve(answer: Answer): void; reject(error: unknown): void };
  readonly #chunks: Buffer[] = [];
  #timer: NodeJS.Timeout;
  #length = 0;
  #status = 0;
  #headers: Answer['headers'] = {};
  #over = false;
  /** Resolves with the answer; rejects with a HeadTimeout, a ConnectError, or undici's error, where no head has come. */
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
