// Contract 3: writes the head and the bytes of a streamed answer.
import type { ServerResponse } from 'node:http';
import { SERVER } from '../http/answer.ts';
import { varyWith } from '../http/cors.ts';
import { isFull } from './entry-pull.ts';
import { GzipMember } from './gzip-member.ts';
import type { KeepAlive, Quiet } from './keep-alive.ts';
import { keepAliveComment } from './sse-encoding.ts';

export interface StreamHead {
  readonly requestId: string;
  /** `performance.now()` when the request arrived. */
  readonly startedAt: number;
  readonly gzip: boolean;
}

/** Writes the status line with the first byte. From then on, a quiet stream carries comments. */
export class StreamResponse implements Quiet {
  quietTicks = 0;
  #committed = false;
  readonly #gzip: GzipMember | undefined;

  readonly #keepAlives: KeepAlive;
  readonly #head: StreamHead;

  constructor(
    readonly raw: ServerResponse,
    keepAlives: KeepAlive,
    head: StreamHead,
  ) {
    this.#keepAlives = keepAlives;
    this.#head = head;

    this.#gzip = head.gzip ? new GzipMember() : undefined;
  }

  get committed(): boolean {
    return this.#committed;
  }

  /** Whether the socket accepts no further bytes now. */
  get full(): boolean {
    return isFull(this.raw);
  }

  /** Writes a comment, unless a slow reader has bytes to take. */
  keepAlive(): void {
    if (!this.full) this.write(keepAliveComment);
  }

  write(events: Buffer): void {
    this.commit();
    this.quietTicks = 0;
    if (this.raw.destroyed || this.raw.writableEnded) return;
    this.raw.write(this.#gzip ? this.#gzip.block(events) : events);
  }

  /** Writes the status line at once. */
  flushHead(): void {
    this.commit();
    this.raw.flushHeaders();
  }

  end(): void {
    this.commit();
    this.raw.end(this.#gzip?.trailer());
    this.leave();
  }

  /** Ends the keep-alive comments. Nothing more is written. */
  leave(): void {
    this.#keepAlives.delete(this);
  }

  commit(): void {
    if (this.#committed) return;
    this.#committed = true;
    this.#keepAlives.add(this);
    const { requestId, startedAt } = this.#head;
    this.raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-request-id': requestId,
      vary: varyWith(this.raw, 'Accept-Encoding'),
      'x-accel-buffering': 'no',
      server: SERVER,
      'x-envoy-upstream-service-time': Math.round(performance.now() - startedAt),
      ...(this.#gzip && { 'content-encoding': 'gzip' }),
    });
    if (this.#gzip) this.raw.write(this.#gzip.head);
  }
}
