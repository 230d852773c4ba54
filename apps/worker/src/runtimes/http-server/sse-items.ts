// WHATWG HTML, "Server-sent events", §9.2.6: an event stream's events as items. What an event says beyond its data survives as a
// ready-made event (contract 3).
import { StringDecoder } from 'node:string_decoder';
import { ServiceError } from '@inference-proxy/contracts';
import type { BodyReader } from './body-reader.ts';
import type { ItemFrames } from './item-frames.ts';

export class SseItems implements BodyReader {
  readonly #frames: ItemFrames;
  readonly #maxItemBytes: number;
  readonly #decoder = new StringDecoder('utf8');
  /** The line that has begun, in the pieces that came: joined once. */
  #begun: string[] = [];
  /** What the event that has begun holds, in characters. */
  #held = 0;
  /** A CR ended a line: an LF right after it belongs to it. */
  #skipLf = false;
  #isFirst = true;
  #data: string[] = [];
  #event = '';
  /** Also of blocks without data, which are no events: they go with the next one. */
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
      this.#hold(last);
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
    this.#held -= begun.length;
    return whole;
  }

  #hold(text: string, joint = 0): void {
    this.#held += text.length + joint;
    if (this.#held > this.#maxItemBytes)
      throw new ServiceError('output_too_large', `An event is over ${this.#maxItemBytes} bytes.`);
  }

  #line(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) {
      if (this.#data.length === 0) this.#held = 0; // a comment says that the server lives
      return;
    }
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    switch (field) {
      case 'data':
        // With the newline that joins it to the line before: lines without anything add up, too.
        this.#hold(value, this.#data.length === 0 ? 0 : 1);
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
    this.#held = 0;
    if (lines.length === 0) return;
    this.#data = [];
    const data = lines.join('\n');
    // Data that could itself be taken for ready-made events (contract 3: a blank line at the end) is told as one.
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
