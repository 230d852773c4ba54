// Contract 1, "Custom runtimes": one request to an app's web server, and its answer. However the server misbehaves, `ended` is called once
// with an error that names the fault. The run has the time limits. Here only connecting has a limit.
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import {
  type AnswerHead,
  decodeRequest,
  type ErrorFields,
  type ForwardedRequest,
  ServiceError,
} from '@inference-proxy/contracts';
import type { ItemsFrame, RunRequest } from '../runtime.ts';
import type { ServerAddress } from './address.ts';
import type { AnswerLimits, BodyReader } from './body-reader.ts';
import { failureText } from './failure-text.ts';
import { CONNECT_MS } from './patient-agent.ts';
import { itemReader, streams, WholeBody } from './response-body.ts';
import { hasNoBody, headOf } from './response-head.ts';

/** Larger than the limit of a record (`encodeHead`), so that `encodeHead` reports a head that is too large. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Methods that are repeated if a kept connection turns out to be closed (RFC 9110 §9.2.2). For other methods, the server may have begun. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']);
/** Methods without a body, unless the request has one (RFC 9110 §8.6). */
const BODILESS = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);
const NOTHING = Buffer.alloc(0);
/** Headers that the worker sets, whatever the caller sent. */
const WORKER_HEADERS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'accept-encoding',
  'x-request-id',
]);

/** The end of an exchange. `broke`: the connection broke, perhaps because the server's process died. */
export type ServerRequestEnd =
  | { readonly ok: true; readonly head: AnswerHead; readonly body?: Buffer }
  | { readonly ok: false; readonly error: ErrorFields; readonly broke: boolean };

export interface ServerRequestListener {
  /** The answer streams. */
  head(head: AnswerHead): void;
  items(frame: ItemsFrame): void;
  /** Called once, as the last event. Never called after `abort`. */
  ended(end: ServerRequestEnd): void;
}

export class ServerRequest {
  readonly #address: ServerAddress;
  readonly #listener: ServerRequestListener;
  readonly #limits: AnswerLimits;
  #forwarded: ForwardedRequest;
  readonly #headers: string[];
  #request: ClientRequest | undefined;
  #answer: IncomingMessage | undefined;
  #connecting: NodeJS.Timeout | undefined;
  /** Bytes that the connection had received before this request. */
  #before = 0;
  #paused = false;
  #over = false;

  constructor(run: RunRequest, address: ServerAddress, limits: AnswerLimits, listener: ServerRequestListener) {
    this.#address = address;
    this.#listener = listener;
    this.#limits = limits;
    this.#forwarded = decodeRequest(run.params);
    this.#headers = headersOf(run, this.#forwarded, address);
  }

  /** Sends the request. */
  start(): void {
    this.#send(this.#address.agent);
  }

  /** Closes the connection, so that the server may notice the end. */
  abort(): void {
    if (!this.#finish()) return;
    this.#request?.destroy();
  }

  /** Stops reading, so that the server has to wait. */
  pause(): void {
    this.#paused = true;
    this.#answer?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#answer?.resume();
  }

  /** @param agent opens or reuses the connection */
  #send(agent: http.Agent): void {
    const { secure, host, port, prefix } = this.#address;
    const { method, target, body } = this.#forwarded;
    const options = { host, port, agent, method, path: prefix + target, maxHeaderSize: MAX_HEADER_BYTES };
    let request: ClientRequest;
    try {
      request = (secure ? https : http).request({ ...options, headers: this.#headers });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      queueMicrotask(() => this.#failed('invalid_request', `The request cannot be forwarded: ${why}`, false));
      return;
    }
    this.#request = request;
    // Otherwise Node would silently drop headers after the 2,000th. The limit in bytes is enough.
    request.maxHeadersCount = 0;
    request.on('socket', (socket) => {
      this.#before = socket.bytesRead;
      if (!socket.connecting) return;
      this.#connecting = setTimeout(() => {
        request.destroy(new Error(`no connection within ${CONNECT_MS / 1_000} s`));
      }, CONNECT_MS);
      socket.once(secure ? 'secureConnect' : 'connect', () => clearTimeout(this.#connecting));
    });
    request.on('finish', () => {
      if (!this.#mayRepeat(request)) this.#releaseBody();
    });
    request.on('response', (answer) => {
      this.#releaseBody();
      this.#answered(request, answer);
    });
    request.on('upgrade', (_answer, socket) => {
      socket.destroy();
      this.#failed(
        'upstream_reset',
        'The server switched to another protocol, although the request did not ask for it.',
        true,
      );
    });
    request.on('error', (error: NodeJS.ErrnoException) => this.#broke(request, error));
    request.end(body);
  }

  /** Whether the request may be repeated on a new connection, if its kept connection turns out to be closed. */
  #mayRepeat(request: ClientRequest): boolean {
    return request.reusedSocket && IDEMPOTENT.has(this.#forwarded.method);
  }

  /** Releases the body, because the request is not sent again. The body may have megabytes, and the answer may stream for hours. */
  #releaseBody(): void {
    this.#forwarded = { ...this.#forwarded, body: NOTHING };
  }

  #answered(request: ClientRequest, answer: IncomingMessage): void {
    if (this.#over) return;
    clearTimeout(this.#connecting);
    this.#answer = answer;
    const { method } = this.#forwarded;
    try {
      const head = headOf(method, answer);
      const reader = this.#readerOf(head, answer, hasNoBody(method, head.status));
      answer.on('data', (chunk: Buffer) => this.#reading(() => reader.push(chunk)));
      answer.on('end', () => {
        // A cut body also emits `end`.
        if (!answer.complete) this.#cut();
        else this.#reading(() => this.#complete(head, reader));
      });
      answer.on('error', () => this.#cut());
      answer.on('close', () => this.#cut());
      if (this.#paused) answer.pause();
    } catch (error) {
      this.#refuse(error);
    }
    if (this.#over) request.destroy();
  }

  #readerOf(head: AnswerHead, answer: IncomingMessage, hasNoBody: boolean): BodyReader {
    const { form } = head;
    if (streams(form)) {
      this.#listener.head(head);
      return itemReader(form, this.#limits, (frame) => this.#listener.items(frame));
    }
    const { maxOutputBytes } = this.#limits;
    if (!hasNoBody && Number(answer.headers['content-length'] ?? 0) > maxOutputBytes)
      throw new ServiceError('output_too_large', `The output is over ${maxOutputBytes} bytes.`);
    return new WholeBody(this.#limits);
  }

  #complete(head: AnswerHead, reader: BodyReader): void {
    reader.end();
    const body = reader instanceof WholeBody && { body: reader.bytes };
    if (!this.#finish()) return;
    // A server that answered before it read the whole request may never read the rest.
    if (this.#request?.writableFinished === false) this.#request.destroy();
    this.#listener.ended({ ok: true, head, ...body });
  }

  /** Runs `act`, and ends the exchange with its ServiceError, for example if the answer is too large. */
  #reading(act: () => void): void {
    if (this.#over) return;
    try {
      act();
    } catch (error) {
      this.#refuse(error);
      this.#request?.destroy();
    }
  }

  #refuse(error: unknown): void {
    if (!(error instanceof ServiceError)) throw error;
    this.#failed(error.code, error.message, false);
  }

  #cut(): void {
    this.#failed('upstream_reset', 'The server broke off its answer.', true);
  }

  #broke(request: ClientRequest, error: NodeJS.ErrnoException): void {
    if (this.#over) return;
    const { name } = this.#address;
    const hasAnswered = (request.socket?.bytesRead ?? 0) > this.#before;
    if (error.code?.startsWith('HPE_')) {
      this.#failed('upstream_reset', `The server's answer is not HTTP: ${error.message}.`, true);
    } else if (this.#answer) {
      this.#cut();
    } else if (hasAnswered) {
      this.#failed('upstream_reset', 'The server broke off the head of its answer.', true);
    } else if (this.#mayRepeat(request)) {
      clearTimeout(this.#connecting);
      this.#send(this.#address.unkept);
    } else {
      this.#failed('upstream_unavailable', `No answer from ${name}: ${failureText(error)}.`, true);
    }
  }

  #failed(code: ErrorFields['code'], message: string, broke: boolean): void {
    if (this.#finish()) this.#listener.ended({ ok: false, error: { code, message }, broke });
  }

  /** Ends the exchange. @returns false if the exchange was over before */
  #finish(): boolean {
    if (this.#over) return false;
    this.#over = true;
    clearTimeout(this.#connecting);
    return true;
  }
}

/** Returns names and values in turn. Node sends such a list unchanged. */
function headersOf(
  run: RunRequest,
  { method, headers, body }: ForwardedRequest,
  { authority }: ServerAddress,
): string[] {
  const list = ['Host', authority];
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (!WORKER_HEADERS.has(lower) && !(lower === 'traceparent' && run.traceparent !== undefined))
      list.push(name, value);
  }
  if (body.length > 0 || !BODILESS.has(method)) list.push('Content-Length', String(body.length));
  // Prevents that a proxy delays a stream to compress it, and keeps the events readable.
  list.push('Accept-Encoding', 'identity', 'X-Request-Id', run.runId);
  if (run.traceparent !== undefined) list.push('Traceparent', run.traceparent);
  return list;
}
