// PROTOCOL.md, "A run": distinguishes streams and plain results, and gives the items of every kind of stream.

/** @typedef {import('./types.d.ts').ItemSource} ItemSource */

/**
 * @param {unknown} value
 * @returns {value is PromiseLike<unknown>}
 */
export const isThenable = (value) =>
  (typeof value === 'object' || typeof value === 'function') &&
  value !== null &&
  typeof (/** @type {{ then?: unknown }} */ (value).then) === 'function';

/**
 * Returns the items of a stream, or undefined for a plain result.
 *
 * @param {unknown} value
 * @returns {ItemSource | undefined}
 */
export function sourceOf(value) {
  if (typeof value !== 'object' || value === null || isValue(value)) return undefined;
  if (value instanceof ReadableStream) return readerSource(value);
  if (Symbol.asyncIterator in value)
    return iteratorSource(/** @type {AsyncIterable<unknown>} */ (value)[Symbol.asyncIterator]());
  if (Symbol.iterator in value) return iteratorSource(/** @type {Iterable<unknown>} */ (value)[Symbol.iterator]());
  return undefined;
}

/**
 * Iterable objects that count as plain results.
 *
 * @param {object} value
 */
const isValue = (value) =>
  Array.isArray(value) ||
  value instanceof Map ||
  value instanceof Set ||
  value instanceof String ||
  ArrayBuffer.isView(value) ||
  value instanceof ArrayBuffer;

/**
 * @param {Iterator<unknown> | AsyncIterator<unknown>} iterator
 * @returns {ItemSource}
 */
const iteratorSource = (iterator) => ({
  settles: Object.prototype.toString.call(iterator) === '[object AsyncGenerator]',
  next: () => iterator.next(),
  stop: () => iterator.return?.(),
});

/**
 * @param {ReadableStream<unknown>} stream
 * @returns {ItemSource}
 */
function readerSource(stream) {
  const reader = stream.getReader();
  // A character may be split between two chunks of bytes.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return {
    settles: false,
    next: async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          decoder.decode(); // throws if the stream ends within a character
          return { done: true, value: undefined };
        }
        if (!(value instanceof Uint8Array)) return { done: false, value };
        const text = decoder.decode(value, { stream: true });
        if (text !== '') return { done: false, value: text };
      }
    },
    stop: (reason) => reader.cancel(reason),
  };
}
