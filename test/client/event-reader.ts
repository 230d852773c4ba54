// Contract 3: a stream's events as the text that arrived, one after the other; no parser hides what was sent.
import type { Readable } from 'node:stream';

const END = '\n\n';

/** Reads only when asked: who does not ask is a slow reader. */
export class EventReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #decoder = new TextDecoder();
  #text = '';

  constructor(readonly source: Readable) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** The next event without its blank line; nothing when the stream has ended. @throws Error where it ends within an event */
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

  /** All events that are still to come. */
  async rest(): Promise<string[]> {
    const events: string[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) events.push(event);
    return events;
  }

  /** Hangs up. */
  leave(): void {
    this.source.on('error', () => {}).destroy();
  }
}
