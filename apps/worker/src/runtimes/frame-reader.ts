// harness/PROTOCOL.md, "Framing": from chunks of a pipe to frames, without a copy where a frame lies in one chunk.
import { type Header, ProtocolError } from './protocol.ts';

const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

/** Longer headers than this are no headers of ours. */
const HEADER_LIMIT = 16 * 1024 * 1024;

/** No limit that can be set for an output comes near it. */
const BLOB_LIMIT = 2 ** 31;

/** Cuts what is read from a replica into frames, and tells of each with its blob (empty where the header names none). */
export class FrameReader {
  readonly #onFrame: (header: Header, blob: Buffer) => void;
  // Parts of a header or blob whose rest has not come; the blob's header stays here meanwhile.
  #parts: Buffer[] = [];
  #size = 0;
  #header: Header | undefined;
  #missing = 0;

  constructor(onFrame: (header: Header, blob: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** @throws ProtocolError when the bytes are no frames; the reader is of no use then */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.#header ? this.#blob(chunk, at, this.#header) : this.#line(chunk, at);
  }

  #line(chunk: Buffer, at: number): number {
    const end = chunk.indexOf(NEWLINE, at);
    if (end === -1) {
      this.#keep(chunk.subarray(at));
      if (this.#size > HEADER_LIMIT) throw new ProtocolError('a header without an end');
      return chunk.length;
    }
    const text =
      this.#parts.length === 0 ? chunk.toString('utf8', at, end) : this.#joined(chunk.subarray(at, end)).toString();
    const header = parse(text);
    const length = header.b;
    if (length === undefined || length === 0) {
      this.#onFrame(header, NOTHING);
    } else if (typeof length === 'number' && Number.isSafeInteger(length) && length > 0 && length < BLOB_LIMIT) {
      this.#header = header;
      this.#missing = length;
    } else {
      throw new ProtocolError('a length that is none');
    }
    return end + 1;
  }

  #blob(chunk: Buffer, at: number, header: Header): number {
    const part = chunk.subarray(at, at + this.#missing);
    this.#missing -= part.length;
    if (this.#missing > 0) {
      this.#keep(part);
    } else {
      this.#header = undefined;
      this.#onFrame(header, this.#parts.length === 0 ? part : this.#joined(part));
    }
    return at + part.length;
  }

  #keep(part: Buffer): void {
    this.#parts.push(part);
    this.#size += part.length;
  }

  #joined(last: Buffer): Buffer {
    this.#parts.push(last);
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#size = 0;
    return whole;
  }
}

function parse(text: string): Header {
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch {
    throw new ProtocolError(`not a header: ${text.slice(0, 200)}`);
  }
  if (typeof header !== 'object' || header === null) throw new ProtocolError('a header that is no object');
  return header as Header;
}
