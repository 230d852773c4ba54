// harness/PROTOCOL.md, "Framing": cuts the chunks of a pipe into frames. Does not copy a frame that lies in one chunk.
import { type Header, ProtocolError } from './protocol.ts';

const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

/** No message has a longer header. */
const HEADER_LIMIT = 16 * 1024 * 1024;

/** The most text that a harness collects for one frame: 32 Ki characters of items or 72 Ki of lines, at most 6 bytes each, up to this limit. */
const COLLECTED_BYTES = 512 * 1024;

/** Limits from `init`. The largest blob of each message follows from them. */
export interface BlobLimits {
  readonly maxItemBytes: number;
  readonly maxOutputBytes: number;
}

/**
 * Returns the most bytes that a run may have sent without credit. A harness stops after the frame that reaches 1 MiB, so a process that sends
 * more does not follow the protocol.
 */
export const largestBacklog = ({ maxItemBytes }: BlobLimits): number => 1024 * 1024 + COLLECTED_BYTES + maxItemBytes;

function largestBlob(message: unknown, { maxItemBytes, maxOutputBytes }: BlobLimits): number {
  switch (message) {
    case undefined: // items: the collected text, and the item that filled the frame
      return COLLECTED_BYTES + maxItemBytes;
    case 'log':
      return COLLECTED_BYTES;
    case 'done':
      return maxOutputBytes;
    default:
      return 0;
  }
}

/** Cuts the bytes of a replica into frames, and calls back with each frame and its blob (empty if the header has no `b`). */
export class FrameReader {
  readonly #limits: BlobLimits;
  readonly #onFrame: (header: Header, blob: Buffer) => void;
  // Parts of an incomplete header or blob. While a blob is incomplete, its header is kept too.
  #parts: Buffer[] = [];
  #size = 0;
  #header: Header | undefined;
  #missing = 0;

  /** @param limits refuse a larger blob before any of it is kept, because an app can forge a header */
  constructor(limits: BlobLimits, onFrame: (header: Header, blob: Buffer) => void) {
    this.#limits = limits;
    this.#onFrame = onFrame;
  }

  /** @throws ProtocolError if the bytes are not frames. The reader cannot be used afterwards. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.#header ? this.#blob(chunk, at, this.#header) : this.#line(chunk, at);
  }

  #line(chunk: Buffer, at: number): number {
    const end = chunk.indexOf(NEWLINE, at);
    if (end === -1) {
      this.#keep(chunk.subarray(at));
      if (this.#size > HEADER_LIMIT) throw new ProtocolError('a header is larger than 16 MiB');
      return chunk.length;
    }
    const text =
      this.#parts.length === 0 ? chunk.toString('utf8', at, end) : this.#joined(chunk.subarray(at, end)).toString();
    const header = parse(text);
    const length = header.b;
    if (length === undefined || length === 0) {
      this.#onFrame(header, NOTHING);
    } else if (typeof length !== 'number' || !Number.isSafeInteger(length) || length < 0) {
      throw new ProtocolError('the length of a blob is not a whole number');
    } else if (length > largestBlob(header.t, this.#limits)) {
      throw new ProtocolError(`a frame of ${length} bytes is over the limit`);
    } else {
      this.#header = header;
      this.#missing = length;
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
    throw new ProtocolError(`a header is not JSON: ${text.slice(0, 200)}`);
  }
  if (typeof header !== 'object' || header === null) throw new ProtocolError('a header is not a JSON object');
  return header as Header;
}
