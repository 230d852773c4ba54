// Contract 3: writes the head of a stream: of a function's events, of a run's logs, or of a custom runtime's own stream.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { SERVER } from '../http/answer.ts';
import { varyWith } from '../http/cors.ts';

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
  writeStreamHead(raw, requestId, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    vary: varyWith(raw, 'Accept-Encoding'),
    server: SERVER,
    'x-envoy-upstream-service-time': Math.round(performance.now() - startedAt),
    ...(gzip && { 'content-encoding': 'gzip' }),
  });
}
