// Contract 1, 3 and 5: the life of an answer that is written while a run's entries arrive. The entries are pulled at the pace of the socket
// (contract 3, "Pace"). All streams use it.
// The time limit for a reader that takes no bytes (`ANSWER_STALL_S`) is in http/server.ts, because it applies to every answer.

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Outcome, ServiceError } from '@inference-proxy/contracts';
import type { RunEvent, RunReader } from '@inference-proxy/store';
import { Subscription, takeWhile, tap } from 'rxjs';
import { SERVER } from '../http/answer.ts';
import type { Interruption, OpenCall } from '../http/open-calls.ts';
import { abort } from '../http/stored-answer.ts';
import { keepAliveComment } from './events.ts';
import { GzipMember } from './gzip-member.ts';

const TICK_MS = 1000;

/** A stream that may be idle. */
export interface IdleStream {
  /** Whole ticks since the last byte. Counting costs less at each write than reading a clock. */
  idleTicks: number;
  keepAlive(): void;
}

/** Writes comments into all idle streams of a gateway, with one timer. */
export class KeepAlive {
  readonly #streams = new Set<IdleStream>();
  readonly #idleTicks: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(idleMs = 15_000) {
    this.#idleTicks = Math.ceil(idleMs / TICK_MS);
  }

  /** Number of open streams. */
  get size(): number {
    return this.#streams.size;
  }

  add(stream: IdleStream): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(this.#tick, TICK_MS);
  }

  delete(stream: IdleStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  readonly #tick = (): void => {
    for (const stream of this.#streams) {
      stream.idleTicks += 1;
      if (stream.idleTicks < this.#idleTicks) continue;
      stream.idleTicks = 0;
      stream.keepAlive();
    }
  };
}

/**
 * A socket gets bytes until this many wait for it in this process. Its own limit (64 KiB) is smaller than some entries of a fast run.
 * With that limit, a reader that keeps up would read every entry from the log. Large items were four times slower.
 */
const FULL_BYTES = 128 * 1024;

/** Returns whether the socket accepts no further bytes now. `drain` reports when the socket accepts bytes again. */
export const isFull = (raw: ServerResponse): boolean => raw.writableLength > FULL_BYTES;

export type RunEntry = Exclude<RunEvent, { type: 'outcome' }>;

export type EntrySource = Pick<RunReader, 'events'>;

/** Receives the entries of a run. */
export interface EntryConsumer {
  next(entry: RunEntry): void;
  /** Called after the last entry. */
  finish(outcome: Outcome): void;
  /** Called if no further entry will arrive. */
  fail(thrown: unknown): void;
}

/**
 * How a live answer ended.
 *
 * - `complete`: every entry is written. If a resumed run has no further event, the status line is not written, and
 *   the caller of `run` answers
 * - `failed`: the status line was written, so the failure is the end of the body
 * - `early`: nothing is written yet; the caller of `run` answers with the real status
 * - `gone`: the reader has disconnected
 * - `waited`: no byte was written within `waitMs`; the caller of `run` answers
 */
export type StreamEnd =
  | { readonly how: 'complete' | 'gone' | 'waited' }
  | { readonly how: 'failed'; readonly error: ServiceError | undefined; readonly outcome?: Outcome }
  | { readonly how: 'early'; readonly outcome: Outcome }
  | { readonly how: 'early'; readonly error: ServiceError };

/** The bytes of an answer, besides its entries. */
export interface LiveBody {
  readonly gzip: boolean;
  /** Whether readers ignore comments, so that comments can keep the connection open. */
  readonly comments: boolean;
}

/**
 * Opens the answer, pulls the run's entries at the pace of the socket, keeps an idle connection open, and ends once. Entries that the socket
 * cannot take stay in the log, and are read from there when the socket has drained.
 */
export class LiveResponse implements IdleStream {
  idleTicks = 0;
  #body: LiveBody | undefined;
  #gzip: GzipMember | undefined;
  #settled = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #end = Promise.withResolvers<StreamEnd>();
  #outcome: Outcome | undefined;
  #subscription = Subscription.EMPTY;

  readonly #reader: EntrySource;
  readonly #keepAlives: KeepAlive;
  readonly #content: EntryConsumer;

  /** @param content receives the entries, and writes them here */
  constructor(
    readonly raw: ServerResponse,
    reader: EntrySource,
    keepAlives: KeepAlive,
    content: EntryConsumer,
  ) {
    this.#reader = reader;
    this.#keepAlives = keepAlives;
    this.#content = content;
  }

  /** Whether the head is written. */
  get isOpen(): boolean {
    return this.#body !== undefined;
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  /**
   * Reads the run's entries until its end, or until the call is interrupted.
   *
   * @param before called before the first entry is read
   */
  run(call: OpenCall, before?: () => void): Promise<StreamEnd> {
    call.onInterrupt(this.#interrupted);
    call.onProbe(this.#probe);
    if (call.interruption === undefined) {
      before?.();
      this.#pull();
    }
    return this.#end.promise;
  }

  /** Calls `then` after `ms`, unless the answer is open or has ended before. A later call replaces an earlier one. */
  unlessOpenAfter(ms: number, then: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, ms);
  }

  /** Opens the body, after the head was written. From then on, an idle body carries comments. */
  open(body: LiveBody): void {
    clearTimeout(this.#timer);
    this.#body = body;
    this.#keepAlives.add(this);
    if (!body.gzip) return;
    this.#gzip = new GzipMember();
    this.raw.write(this.#gzip.head);
  }

  /** Writes bytes of an open body. Bytes for a disconnected reader are dropped. */
  write(bytes: Buffer): void {
    this.idleTicks = 0;
    if (this.raw.destroyed || this.raw.writableEnded) return;
    this.raw.write(this.#gzip ? this.#gzip.block(bytes) : bytes);
  }

  /** Writes a comment, unless a slow reader has bytes to take. */
  keepAlive(): void {
    if (this.#body?.comments && !isFull(this.raw)) this.write(keepAliveComment);
  }

  /** Ends an open body. */
  end(end: StreamEnd): void {
    this.raw.end(this.#gzip?.trailer());
    this.settle(end);
  }

  /** Ends an open body so that the reader notices the missing rest. */
  abort(end: StreamEnd): void {
    abort(this.raw);
    this.settle(end);
  }

  /** Reads no further entries. The caller of `run` may write another answer. */
  leave(end: StreamEnd): void {
    this.#stopPulling();
    this.settle(end);
  }

  /** Reports the end. Nothing more is written here. */
  settle(end: StreamEnd): void {
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#keepAlives.delete(this);
    this.#end.resolve(end);
  }

  readonly #pull = (): void => {
    this.#subscription = this.#reader
      .events()
      .pipe(
        tap(this.#received),
        takeWhile(() => !isFull(this.raw)),
      )
      .subscribe({ complete: this.#paused, error: this.#failed });
  };

  #stopPulling(): void {
    this.#subscription.unsubscribe();
    this.raw.off('drain', this.#pull);
  }

  readonly #received = (event: RunEvent): void => {
    if (event.type === 'outcome') this.#outcome = event.outcome;
    else this.#content.next(event);
  };

  /** The run's entries have ended, or the socket is full. */
  readonly #paused = (): void => {
    if (this.#outcome === undefined) {
      this.raw.once('drain', this.#pull);
      return;
    }
    // RxJS throws an exception of a `complete` callback in a later turn of the event loop, which would end the gateway's process.
    try {
      this.#content.finish(this.#outcome);
    } catch (thrown) {
      this.#failed(thrown);
    }
  };

  readonly #failed = (thrown: unknown): void => {
    try {
      this.#content.fail(thrown);
    } catch {
      this.raw.destroy();
    }
  };

  readonly #interrupted = (why: Interruption): void => {
    if (why === 'gone') this.leave({ how: 'gone' });
    else {
      this.#stopPulling();
      this.#content.fail(why);
    }
  };

  /** The caller closed its side. If no harmless bytes can probe the connection, the caller counts as disconnected. */
  readonly #probe = (): void => {
    if (this.#body?.comments) this.keepAlive();
    else if (this.#body) this.raw.destroy();
  };
}

export interface EventsHead {
  readonly requestId: string;
  /** `performance.now()` when the request arrived. */
  readonly startedAt: number;
  readonly gzip: boolean;
}

/**
 * Writes the status line and the headers of any stream.
 *
 * @param raw may already have a status and headers, such as the headers of a custom runtime
 * @param headers of this kind of stream. The headers of every stream are added to the object
 */
export function writeStreamHead(raw: ServerResponse, requestId: string, headers: OutgoingHttpHeaders = {}): void {
  headers['x-request-id'] = requestId;
  // Without this header, proxies before the gateway would buffer the stream.
  if (!raw.hasHeader('x-accel-buffering')) headers['x-accel-buffering'] = 'no';
  raw.writeHead(raw.statusCode, headers);
}

/** Writes the head of a stream of the service's own events. */
export function writeEventsHead(raw: ServerResponse, { requestId, startedAt, gzip }: EventsHead): void {
  raw.statusCode = 200;
  writeStreamHead(raw, requestId, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    vary: varyWith(raw, 'Accept-Encoding'),
    server: SERVER,
    'x-envoy-upstream-service-time': Math.round(performance.now() - startedAt),
    ...(gzip && { 'content-encoding': 'gzip' }),
  });
}

/** Returns the value of `Vary` for an answer that also varies with `names`. */
function varyWith(response: ServerResponse, names: string): string {
  const already = response.getHeader('vary');
  return already === undefined ? names : `${already}, ${names}`;
}
