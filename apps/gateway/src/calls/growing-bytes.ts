// Contract 1: bytes that come in pieces whose number the sender decides. A piece kept as it came costs some 200 bytes more than it holds.

const EMPTY: Buffer = Buffer.alloc(0);
const LEAST = 1024;

/** Bytes in one place that doubles when it is full: a body of millions of one-byte chunks costs at most three times its length. */
export class GrowingBytes {
  #room: Buffer = EMPTY;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What is allocated. */
  get heldBytes(): number {
    return this.#room.length;
  }

  /** The piece itself is kept where it is the first: most bodies are one. */
  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (this.#room.length === 0) {
      this.#room = piece;
    } else {
      if (length > this.#room.length) this.#grow(length);
      piece.copy(this.#room, this.#length);
    }
    this.#length = length;
  }

  bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  #grow(length: number): void {
    const room = Buffer.allocUnsafeSlow(Math.max(LEAST, 2 * this.#room.length, length));
    this.#room.copy(room, 0, 0, this.#length);
    this.#room = room;
  }
}
