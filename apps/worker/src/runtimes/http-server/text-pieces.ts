// Contract 1, "Custom runtimes": the pieces of a text as received. Each piece is a whole number of UTF-8 characters, with its bytes unchanged.
import type { ItemsFrame } from '../runtime.ts';
import type { BodyReader } from './body-reader.ts';

const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

/** Returns the number of bytes at the end that begin an incomplete character. */
function begunCharacter(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if ((byte & 0xc0) === 0x80) continue; // inside a character
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

export class TextPieces implements BodyReader {
  readonly #pass: (frame: ItemsFrame) => void;
  #begun: Buffer = NOTHING;

  constructor(pass: (frame: ItemsFrame) => void) {
    this.#pass = pass;
  }

  push(chunk: Buffer): void {
    const bytes = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]);
    const end = bytes.length - begunCharacter(bytes);
    this.#begun = bytes.subarray(end);
    this.#piece(bytes.subarray(0, end));
  }

  end(): void {
    this.#piece(this.#begun);
  }

  #piece(blob: Buffer): void {
    if (blob.length > 0) this.#pass({ kind: blob.includes(NEWLINE) ? 'm' : 's', count: 1, blob });
  }
}
