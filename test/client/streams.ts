// Contract 3 and 5: what every stream has, for tests. A header or line that is added to every stream changes this file only.
// apps/gateway/src/streaming/event-stream.test.ts pins the exact bytes of one stream.

/** Headers of every stream, also of custom runtimes. */
export const EVERY_STREAM = { 'x-accel-buffering': 'no', 'transfer-encoding': 'chunked' };

/** Headers of a stream of the service's own events, without those whose values vary. */
export const OWN_STREAM = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  vary: 'Accept-Encoding',
  server: 'inference-proxy',
  ...EVERY_STREAM,
};

/** Names of the headers of such a stream whose values vary. */
export const VARYING = ['date', 'x-request-id', 'x-envoy-upstream-service-time', 'connection'];

/** Returns the first lines of a stream with ids, as `EventReader` returns them. @param after number of the event after which the stream begins */
export const openingEvent = (after: number): string => `retry: 1000\nid: ${after}`;

/** Returns the bytes of these lines. */
export const opening = (after: number): string => `${openingEvent(after)}\n\n`;

/** Returns a stream with ids without its first lines. @throws Error if the stream does not begin with them */
export function afterOpening(after: number, text: string): string {
  if (!text.startsWith(opening(after)))
    throw new Error(`expected a stream that begins after ${after}: ${text.slice(0, 100)}`);
  return text.slice(opening(after).length);
}
