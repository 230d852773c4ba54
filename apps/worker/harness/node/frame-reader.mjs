// PROTOCOL.md, "Framing": cuts the worker's bytes into headers and blobs.
const NEWLINE = 0x0a;
const NO_BYTES = Buffer.alloc(0);

/** @typedef {import('./types.d.ts').WorkerMessage} WorkerMessage */

export class FrameReader {
  #onFrame;
  /** Received bytes that are no whole frame yet. @type {Buffer} */
  #rest = NO_BYTES;
  /** The header whose blob is not complete. @type {WorkerMessage | undefined} */
  #header;
  /** The received parts of this blob. @type {Buffer[]} */
  #parts = [];
  #missing = 0;

  /** @param {(header: WorkerMessage, blob: Buffer) => void} onFrame */
  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  /**
   * Takes the next bytes.
   *
   * @param {Buffer} chunk
   */
  push(chunk) {
    let data = chunk;
    while (data.length > 0) {
      data = this.#header === undefined ? this.#readHeader(data) : this.#readBlob(data);
    }
  }

  /**
   * Returns the bytes after the header.
   *
   * @param {Buffer} data
   */
  #readHeader(data) {
    const end = data.indexOf(NEWLINE);
    if (end === -1) {
      this.#rest = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
      return NO_BYTES;
    }
    const line =
      this.#rest.length === 0 ? data.toString('utf8', 0, end) : this.#rest.toString() + data.toString('utf8', 0, end);
    this.#rest = NO_BYTES;
    const header = /** @type {WorkerMessage} */ (JSON.parse(line));
    if (header.b === undefined || header.b === 0) this.#onFrame(header, NO_BYTES);
    else {
      this.#header = header;
      this.#missing = header.b;
    }
    return data.subarray(end + 1);
  }

  /**
   * Returns the bytes after the blob.
   *
   * @param {Buffer} data
   */
  #readBlob(data) {
    const part = data.subarray(0, this.#missing);
    this.#parts.push(part);
    this.#missing -= part.length;
    if (this.#missing === 0) {
      const header = /** @type {WorkerMessage} */ (this.#header);
      const blob = this.#parts.length === 1 ? part : Buffer.concat(this.#parts);
      this.#header = undefined;
      this.#parts = [];
      this.#onFrame(header, blob);
    }
    return data.subarray(part.length);
  }
}
