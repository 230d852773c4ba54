// Contract 3 and RFC 1952: writes one gzip member block by block (RFC 1951), without a zlib stream.
// A zlib stream for each response would cost 217 KB and 25 µs an item. This class costs two numbers and the last 2 KiB.
import { constants, crc32, deflateRawSync } from 'node:zlib';
import { FixedDeflate } from './fixed-deflate.ts';

/** Magic, deflate, no flags, no time, no hint, unknown system. */
const HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
const STORED_MOST = 0xffff;
/** Below this number of bytes, starting zlib costs more than zlib saves. */
const DEFLATED_LEAST = 4096;
const TRAILER_BYTES = 10;
/** The bytes of a stored block beside its content. */
const STORED_BYTES = 5;
// A sync flush ends the block on a byte, so that any other block can follow.
const DEFLATE = { level: 3, finishFlush: constants.Z_SYNC_FLUSH };

export class GzipMember {
  readonly head = HEAD;
  /** Checksum and size of all bytes so far, for the trailer. */
  #crc = 0;
  #size = 0;
  readonly #small = new FixedDeflate();

  /** Returns a block of the next bytes that a reader can decode at once. `data` has at least one byte. */
  block(data: Buffer): Buffer {
    this.#crc = crc32(data, this.#crc);
    this.#size = (this.#size + data.length) >>> 0;
    if (data.length >= DEFLATED_LEAST) {
      this.#small.passed(data);
      return deflatedOnce(data);
    }
    const block = this.#small.block(data);
    return block.length < STORED_BYTES + data.length ? block : stored(data);
  }

  /** Returns the end: an empty last block, checksum and size. */
  trailer(): Buffer {
    const end = Buffer.allocUnsafe(TRAILER_BYTES);
    end[0] = 0x03;
    end[1] = 0x00;
    end.writeUInt32LE(this.#crc, 2);
    end.writeUInt32LE(this.#size, 6);
    return end;
  }
}

/** Compressed blocks by their bytes, because many readers of a run get the same bytes. */
const deflated = new WeakMap<Buffer, Buffer>();

/** Compresses these bytes once. The block can stand at any position of any member. */
function deflatedOnce(data: Buffer): Buffer {
  let block = deflated.get(data);
  if (!block) {
    block = deflateRawSync(data, DEFLATE);
    deflated.set(data, block);
  }
  return block;
}

/** Returns a stored block (RFC 1951 §3.2.4) that is not the last block. */
function stored(data: Buffer): Buffer {
  const block = Buffer.allocUnsafe(STORED_BYTES + data.length);
  block[0] = 0;
  block.writeUInt16LE(data.length, 1);
  block.writeUInt16LE(~data.length & STORED_MOST, 3);
  data.copy(block, STORED_BYTES);
  return block;
}
