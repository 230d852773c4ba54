// Contract 2, "HTTP status of a result": the values of a `Response` that a function returns. Events and lines of JSON are streams.

const EVENTS = 'text/event-stream';
const LINES = ['application/x-ndjson', 'application/ndjson', 'application/jsonl'];

/** A Response whose body is one value. */
export class Answer {
  /**
   * @param {unknown} value
   * @param {number} status
   */
  constructor(value, status) {
    this.value = value;
    this.status = status;
  }
}

/**
 * Returns the value of a Response, or the iterator of its stream.
 *
 * @param {Response} response
 * @returns {Promise<Answer | AsyncIterable<unknown>>}
 */
export async function answerOf(response) {
  const type = (response.headers.get('content-type') ?? '').toLowerCase();
  const essence = (type.split(';')[0] ?? '').trim();
  if (essence === EVENTS && response.body !== null) return pieces(response.body, '\n\n', (event) => event);
  if (LINES.includes(essence) && response.body !== null)
    return pieces(response.body, '\n', (line) => (line.trim() === '' ? undefined : JSON.parse(line)));
  if (essence === 'application/json' || essence.endsWith('+json')) {
    const text = await response.text();
    return new Answer(text === '' ? null : JSON.parse(text), response.status);
  }
  const bytes = Buffer.from(await response.arrayBuffer());
  return new Answer(response.body === null ? null : bytes, response.status);
}

/**
 * Yields the parts of a body. Each part but the last ends with the separator.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {string} separator
 * @param {(part: string) => unknown} read returns the item of a part, or undefined for none
 */
async function* pieces(body, separator, read) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  for await (const chunk of body) {
    // A line end may be split between two chunks.
    rest = (rest + decoder.decode(chunk, { stream: true })).replaceAll('\r\n', '\n');
    for (let end = rest.indexOf(separator); end !== -1; end = rest.indexOf(separator)) {
      const item = read(rest.slice(0, end + separator.length));
      rest = rest.slice(end + separator.length);
      if (item !== undefined) yield item;
    }
  }
  rest += decoder.decode(); // throws if the body ends within a character
  const last = rest === '' ? undefined : read(rest);
  if (last !== undefined) yield last;
}
