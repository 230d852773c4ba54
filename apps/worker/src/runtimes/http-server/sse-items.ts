// WHATWG HTML, "Server-sent events", §9.2.6: the events of an event stream as items. An event with more than data stays
// a ready-made event (Contract 3, "Ready-made events").
import { StringDecoder } from 'node:string_decoder';
import { ServiceError } from '@inference-proxy/contracts';
import type { BodyReader } from './body-reader.ts';
import type { ItemFrames } from './item-frames.ts';

export class SseItems implements BodyReader {
  readonly #frames: ItemFrames;
  readonly #maxItemBytes: number;
  readonly #decoder = new StringDecoder('utf8');
  /** The pieces of the incomplete line. They are joined only once. */
  #begun: string[] = [];
  /** The size of the incomplete event, in characters. */
  #size = 0;
  /** A CR ended the last line. An LF directly after it belongs to the same line end. */
  #skipLf = false;
  #isFirst = true;
  #data: string[] = [];
  #event = '';
  /** The last id. A block without data is not an event, so its id goes to the next event. */
  #id: string | undefined;
  #retry: string | undefined;

  constructor(frames: ItemFrames, maxItemBytes: number) {
    this.#frames = frames;
    this.#maxItemBytes = maxItemBytes;
  }

  push(chunk: Buffer): void {
    let text = this.#decoder.write(chunk);
    if (text === '') return;
    if (this.#isFirst) {
      this.#isFirst = false;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    if (this.#skipLf && text.startsWith('\n')) text = text.slice(1);
    this.#skipLf = text.endsWith('\r');
    if (text.includes('\r')) text = text.replace(/\r\n?/g, '\n');
    const lines = text.split('\n');
    const last = lines.pop() as string;
    for (const line of lines) this.#line(this.#complete(line));
    if (last !== '') {
      this.#keep(last);
      this.#begun.push(last);
    }
    this.#frames.flush();
  }

  end(): void {
    const rest = this.#complete(this.#decoder.end());
    if (this.#data.length > 0 || this.#event !== '' || (rest !== '' && !rest.startsWith(':')))
      throw new ServiceError('upstream_reset', 'The server ended its stream inside an event.');
  }

  #complete(line: string): string {
    if (this.#begun.length === 0) return line;
    const begun = this.#begun.join('');
    const whole = begun + line;
    this.#begun = [];
    this.#size -= begun.length;
    return whole;
  }

  #keep(text: string, joint = 0): void {
    this.#size += text.length + joint;
    if (this.#size > this.#maxItemBytes)
      throw new ServiceError('output_too_large', `An event is over ${this.#maxItemBytes} bytes.`);
  }

  #line(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) {
      if (this.#data.length === 0) this.#size = 0; // a comment only shows that the server is alive
      return;
    }
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    switch (field) {
      case 'data':
        // Counts the newline that joins the line to the line before, so that empty lines add up too.
        this.#keep(value, this.#data.length === 0 ? 0 : 1);
        this.#data.push(value);
        return;
      case 'event':
        this.#event = value;
        return;
      case 'id':
        if (!value.includes('\0')) this.#id = value;
        return;
      case 'retry':
        if (/^\d+$/.test(value)) this.#retry = value;
    }
  }

  #dispatch(): void {
    const lines = this.#data;
    const event = this.#event;
    this.#event = '';
    this.#size = 0;
    if (lines.length === 0) return;
    this.#data = [];
    const data = lines.join('\n');
    // Data that looks like ready-made events (a blank line at the end) is sent as one ready-made event.
    if (event === '' && this.#id === undefined && this.#retry === undefined && !data.endsWith('\n\n')) {
      this.#frames.text(data);
      return;
    }
    const named = event === '' ? '' : `event: ${event}\n`;
    const id = this.#id === undefined ? '' : `id: ${this.#id}\n`;
    const retry = this.#retry === undefined ? '' : `retry: ${this.#retry}\n`;
    this.#id = undefined;
    this.#retry = undefined;
    this.#frames.text(`${named}${id}${retry}${lines.map((line) => `data: ${line}\n`).join('')}\n`);
  }
}
