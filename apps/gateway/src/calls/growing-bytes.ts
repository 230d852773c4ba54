// Contract 1, "Body": collects bytes in pieces. The sender decides how many pieces, and each stored piece would cost some 200 extra bytes.

const EMPTY: Buffer = Buffer.alloc(0);
const LEAST = 1024;

/** Collects bytes in one buffer that doubles when it is full. A body of millions of one-byte chunks costs at most three times its length. */
export class GrowingBytes {
  #room: Buffer = EMPTY;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Size of the allocated buffer. */
  get heldBytes(): number {
    return this.#room.length;
  }

  /** Adds a piece. The first piece is kept without a copy, because most bodies are one piece. */
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
