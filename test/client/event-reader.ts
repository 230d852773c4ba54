// Contract 3: a stream's events as the text that arrived, in order. No parser hides bytes. Comments count as events here.
import type { Readable } from 'node:stream';

const END = '\n\n';

/** Reads only on demand, so that a test can be a slow reader. */
export class EventReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #decoder = new TextDecoder();
  #text = '';

  constructor(readonly source: Readable) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** Returns the next event or comment without its blank line; undefined after the end. @throws Error if the stream ends within an event */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf(END);
      if (end !== -1) {
        const event = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + END.length);
        return event;
      }
      const { done, value } = await this.#chunks.next();
      if (!done) this.#text += this.#decoder.decode(value, { stream: true });
      else if (this.#text === '') return undefined;
      else throw new Error(`the stream ended within an event: ${this.#text}`);
    }
  }

  /** Returns all remaining events and comments. */
  async rest(): Promise<string[]> {
    const events: string[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) events.push(event);
    return events;
  }

  /** Closes the connection. */
  leave(): void {
    this.source.on('error', () => {}).destroy();
  }
}
