// Newline-delimited JSON (github.com/ndjson/ndjson-spec): each line is an item: its JSON text, or a string if the line is not JSON.
import { StringDecoder } from 'node:string_decoder';
import { ServiceError } from '@inference-proxy/contracts';
import type { BodyReader } from './body-reader.ts';
import type { ItemFrames } from './item-frames.ts';

export class NdjsonItems implements BodyReader {
  readonly #frames: ItemFrames;
  readonly #maxItemBytes: number;
  readonly #decoder = new StringDecoder('utf8');
  /** The pieces of the incomplete line. They are joined only once. */
  #begun: string[] = [];
  #size = 0;

  constructor(frames: ItemFrames, maxItemBytes: number) {
    this.#frames = frames;
    this.#maxItemBytes = maxItemBytes;
  }

  push(chunk: Buffer): void {
    const lines = this.#decoder.write(chunk).split('\n');
    const last = lines.pop() as string;
    for (const line of lines) this.#line(line);
    this.#keep(last);
    this.#frames.flush();
  }

  /** Ends the body. The last line needs no newline, but must be complete JSON. */
  end(): void {
    this.#keep(this.#decoder.end());
    const rest = this.#begun.join('').trim();
    if (rest === '') return;
    if (!isJson(rest)) throw new ServiceError('upstream_reset', 'The server ended its stream inside a line.');
    this.#frames.json(rest);
    this.#frames.flush();
  }

  #keep(text: string): void {
    if (text === '') return;
    this.#size += text.length;
    if (this.#size > this.#maxItemBytes)
      throw new ServiceError('output_too_large', `A line is over ${this.#maxItemBytes} bytes.`);
    this.#begun.push(text);
  }

  #line(end: string): void {
    this.#keep(end);
    const line = this.#begun.join('').trim();
    this.#begun = [];
    this.#size = 0;
    if (line === '') return;
    if (isJson(line)) this.#frames.json(line);
    else this.#frames.text(line);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
