// RFC 1951 §3.2.6: compresses small pieces of a stream as blocks of fixed Huffman codes. The blocks refer to earlier bytes of the stream.
// A zlib stream for each response would take 217 KB and 25 µs an item. This file keeps only the last bytes of the stream.

/** How many bytes back a block refers: a few events. */
const HISTORY = 2048;
const LARGEST = 4096;
const MIN_MATCH = 4;
const MAX_MATCH = 258;
/** How many earlier positions are tried for the longest match. */
const TRIES = 16;
const HASH_BITS = 11;
const END_OF_BLOCK = 256;

/** A sync flush: an empty stored block. Some readers (Go's) pass on their bytes only after such a block. */
const SYNC = [0x00, 0x00, 0xff, 0xff];

const reversed = (code: number, bits: number): number => {
  let result = 0;
  for (let bit = 0; bit < bits; bit++) result |= ((code >> bit) & 1) << (bits - 1 - bit);
  return result;
};

/** The code of each symbol, with the first bit lowest, and the length of the code. */
const CODE = new Uint16Array(288);
const CODE_BITS = new Uint8Array(288);
for (let symbol = 0; symbol < 288; symbol++) {
  const [code, bits] =
    symbol < 144
      ? [0x30 + symbol, 8]
      : symbol < 256
        ? [0x190 + symbol - 144, 9]
        : symbol < 280
          ? [symbol - 256, 7]
          : [0xc0 + symbol - 280, 8];
  CODE[symbol] = reversed(code, bits);
  CODE_BITS[symbol] = bits;
}

/** Returns the smallest value of each code, and its extra bits, for lengths and for distances. */
function codes(count: number, first: number, plain: number, each: number): { base: number[]; extra: number[] } {
  const [base, extra]: [number[], number[]] = [[], []];
  for (let code = 0, value = first; code < count; code++) {
    const bits = code < plain ? 0 : Math.floor((code - plain) / each) + 1;
    base.push(value);
    extra.push(bits);
    value += 1 << bits;
  }
  return { base, extra };
}
const LENGTHS = codes(28, 3, 8, 4);
const DISTANCES = codes(30, 1, 4, 2);

const lengthCode = new Uint8Array(MAX_MATCH + 1);
for (let length = 3, code = 0; length < MAX_MATCH; length++) {
  while (code < 27 && length >= (LENGTHS.base[code + 1] as number)) code++;
  lengthCode[length] = code;
}
/** The longest match has its own code. */
lengthCode[MAX_MATCH] = 28;
const distanceCode = new Uint8Array(HISTORY + LARGEST + 1);
for (let distance = 1, code = 0; distance < distanceCode.length; distance++) {
  while (code < 29 && distance >= (DISTANCES.base[code + 1] as number)) code++;
  distanceCode[distance] = code;
}

// All streams share these buffers, because a block is made without interruption.
const text = new Uint8Array(HISTORY + LARGEST);
const heads = new Int16Array(1 << HASH_BITS);
const chain = new Int16Array(HISTORY + LARGEST);
const out = Buffer.alloc(LARGEST * 2 + 16);
let length = 0;
let pending = 0;
let pendingBits = 0;

function put(value: number, bits: number): void {
  pending |= value << pendingBits;
  pendingBits += bits;
  while (pendingBits >= 8) {
    out[length++] = pending & 0xff;
    pending >>>= 8;
    pendingBits -= 8;
  }
}

function putMatch(size: number, distance: number): void {
  const code = lengthCode[size] as number;
  put(CODE[257 + code] as number, CODE_BITS[257 + code] as number);
  if (code < 28) put(size - (LENGTHS.base[code] as number), LENGTHS.extra[code] as number);
  const far = distanceCode[distance] as number;
  put(reversed(far, 5), 5);
  put(distance - (DISTANCES.base[far] as number), DISTANCES.extra[far] as number);
}

const hashAt = (at: number): number =>
  Math.imul(
    (text[at] as number) |
      ((text[at + 1] as number) << 8) |
      ((text[at + 2] as number) << 16) |
      ((text[at + 3] as number) << 24),
    0x9e3779b1,
  ) >>>
  (32 - HASH_BITS);

function remember(at: number): void {
  const hash = hashAt(at);
  chain[at] = heads[hash] as number;
  heads[hash] = at;
}

/** Makes the blocks of one stream, in order. Each block ends on a byte and refers to the bytes before it. */
export class FixedDeflate {
  #history: Buffer = Buffer.alloc(0);

  /** Returns the next bytes, at most 4096, as a block that a reader can decode at once. */
  block(data: Buffer): Buffer {
    const from = this.#history.length;
    const end = from + data.length;
    text.set(this.#history);
    text.set(data, from);
    heads.fill(-1);
    for (let at = 0; at < from && at + MIN_MATCH <= end; at++) remember(at);
    length = pending = pendingBits = 0;
    put(0b010, 3);
    for (let at = from; at < end; ) at += encode(at, end);
    put(CODE[END_OF_BLOCK] as number, CODE_BITS[END_OF_BLOCK] as number);
    put(0, 3);
    if (pendingBits > 0) put(0, 8 - pendingBits);
    for (const byte of SYNC) out[length++] = byte;
    this.passed(data);
    return Buffer.from(out.subarray(0, length));
  }

  /** Records bytes of the stream that another encoder has written. */
  passed(data: Buffer): void {
    const kept = Math.min(this.#history.length, Math.max(0, HISTORY - data.length));
    this.#history = Buffer.concat([
      this.#history.subarray(this.#history.length - kept),
      data.subarray(Math.max(0, data.length - HISTORY)),
    ]);
  }
}

/** Writes a match or one byte that begins at `at`. Returns its number of bytes. */
function encode(at: number, end: number): number {
  let [best, distance] = [0, 0];
  if (at + MIN_MATCH <= end) {
    const most = Math.min(MAX_MATCH, end - at);
    let place = heads[hashAt(at)] as number;
    for (let tries = 0; place >= 0 && tries < TRIES; tries++, place = chain[place] as number) {
      if (text[place + best] !== text[at + best]) continue;
      let size = 0;
      while (size < most && text[place + size] === text[at + size]) size++;
      if (size > best) [best, distance] = [size, at - place];
      if (best === most) break;
    }
    remember(at);
  }
  if (best < MIN_MATCH) {
    const symbol = text[at] as number;
    put(CODE[symbol] as number, CODE_BITS[symbol] as number);
    return 1;
  }
  putMatch(best, distance);
  for (let next = at + 1; next < at + best && next + MIN_MATCH <= end; next++) remember(next);
  return best;
}
