// Contract 2, "HTTP status of a result": the head and the body of a `Response` that a function returns.
import { TooLarge, Unserializable } from './output.mjs';

const LINES = ['application/x-ndjson', 'application/ndjson', 'application/jsonl'];
const TEXT = ['application/xml', 'application/javascript', 'application/x-www-form-urlencoded'];
const UTF8 = ['', 'utf-8', 'utf8', 'us-ascii', 'ascii'];
/** The same grammar as in the worker, which ends a process that breaks it. */
const MEDIA_TYPE = /^[\w.+-]{1,80}\/[\w.+-]{1,80}(?:; ?[\w.-]{1,40}=(?:[\w.+-]{1,80}|"[\w .+/=-]{0,80}")){0,3}$/;
/** The largest piece of a body in bytes. The items of a run wait for credit between pieces. */
const PIECE_BYTES = 64 * 1024;

/**
 * @typedef {import('./types.d.ts').Head} Head
 * @typedef {import('./types.d.ts').ItemSource} ItemSource
 */

/**
 * Returns the head of a Response, with the same forms as a custom runtime's answer.
 *
 * @param {Response} response
 * @returns {Head}
 */
export function headOf({ status, headers, body, type }) {
  if (type === 'error') throw new TypeError('the function returned Response.error(), which has no status');
  const media = headers.get('content-type') ?? undefined;
  if (media !== undefined && !MEDIA_TYPE.test(media))
    throw new TypeError(`the content type of the Response is not a media type: ${media.slice(0, 200)}`);
  return { status, ...(media !== undefined && { media }), form: formOf(media ?? '', body === null) };
}

/**
 * @param {string} media
 * @param {boolean} isEmpty the Response has no body
 * @returns {Head['form']}
 */
function formOf(media, isEmpty) {
  const [essence = '', ...parameters] = media
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  if (essence === 'application/json' || essence.endsWith('+json')) return 'json';
  if (isEmpty) return 'binary';
  if (essence === 'text/event-stream') return 'sse';
  if (LINES.includes(essence)) return 'ndjson';
  if (!essence.startsWith('text/') && !essence.endsWith('+xml') && !TEXT.includes(essence)) return 'bytes';
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice(8) ?? '';
  return UTF8.includes(charset.replaceAll('"', '')) ? 'chunks' : 'text';
}

/**
 * Returns the items of a body, or undefined if the body is one value.
 *
 * @param {Head['form']} form
 * @param {ReadableStream<Uint8Array>} body
 * @returns {ItemSource | undefined}
 */
export function itemsOf(form, body) {
  switch (form) {
    case 'sse':
      return ended(body, (chunks) => parts(chunks, '\n\n', (event) => event));
    case 'ndjson':
      return ended(body, (chunks) =>
        parts(chunks, '\n', (line) => (line.trim() === '' ? undefined : JSON.parse(line))),
      );
    case 'chunks':
      return ended(body, texts);
    case 'bytes':
      return piecesOf(body);
    default:
      return undefined;
  }
}

/**
 * Returns the whole body.
 *
 * @param {ItemSource} source the pieces of the body
 * @param {number} limit in bytes
 * @throws {TooLarge}
 */
export async function wholeBody(source, limit) {
  /** @type {Buffer[]} */
  const found = [];
  let size = 0;
  for (;;) {
    const { done, value } = /** @type {IteratorResult<Buffer>} */ (await source.next());
    if (done) return Buffer.concat(found);
    size += value.length;
    if (size > limit) {
      await source.stop(undefined);
      throw new TooLarge(`the body of the Response is over ${limit} bytes`);
    }
    found.push(value);
  }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @returns {ItemSource}
 */
export const piecesOf = (body) => ({ ...ended(body, pieces), isBytes: true });

/**
 * Returns the items of a body. `stop` cancels the body, also while its next chunk is awaited.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {(chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<unknown>} read
 * @returns {ItemSource}
 */
function ended(body, read) {
  const reader = body.getReader();
  const items = read({
    [Symbol.asyncIterator]: () => ({ next: () => /** @type {Promise<IteratorResult<Uint8Array>>} */ (reader.read()) }),
  });
  return { settles: false, next: () => items.next(), stop: (reason) => reader.cancel(reason) };
}

/** @param {AsyncIterable<Uint8Array>} chunks */
async function* pieces(chunks) {
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      const { buffer, byteOffset } = chunk;
      yield Buffer.from(buffer, byteOffset + at, Math.min(PIECE_BYTES, chunk.length - at));
    }
}

/** @param {AsyncIterable<Uint8Array>} chunks */
async function* texts(chunks) {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  for await (const piece of pieces(chunks)) {
    const text = decoded(decoder, piece);
    if (text !== '') yield text;
  }
  decoded(decoder); // throws if the body ends within a character
}

/**
 * @param {{ decode(bytes?: Uint8Array, options?: { stream: boolean }): string }} decoder
 * @param {Uint8Array} [bytes] none at the end
 * @throws {Unserializable}
 */
function decoded(decoder, bytes) {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
  } catch {
    throw new Unserializable('the body of the Response is not UTF-8: name its charset in the content type');
  }
}

/**
 * Yields the parts of a text. Each part but the last ends with the separator.
 *
 * @param {AsyncIterable<Uint8Array>} chunks
 * @param {string} separator
 * @param {(part: string) => unknown} read returns the item of a part, or undefined for none
 */
async function* parts(chunks, separator, read) {
  let rest = '';
  for await (const text of texts(chunks)) {
    // A line end may be split between two chunks.
    rest = (rest + text).replaceAll('\r\n', '\n');
    for (let end = rest.indexOf(separator); end !== -1; end = rest.indexOf(separator)) {
      const item = read(rest.slice(0, end + separator.length));
      rest = rest.slice(end + separator.length);
      if (item !== undefined) yield item;
    }
  }
  const last = rest === '' ? undefined : read(rest);
  if (last !== undefined) yield last;
}
