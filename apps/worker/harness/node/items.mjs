// PROTOCOL.md, "Items" and "Pace": the items of a stream between the function and the channel, and the credit for further items.
import { now } from './clock.mjs';
import { encode, TooLarge } from './output.mjs';

const FIRST_WINDOW = 256;
const LARGEST_WINDOW = 4096;
/** A waiting producer continues when this part of the window is free. Otherwise, each small credit would cause a small frame. */
const RESUMING_PART = 1 / 4;
const WINDOW_BYTES = 1024 * 1024;
/** The most items in one frame. The worker limits a frame's bytes, and empty items have none. */
const FRAME_ITEMS = 32 * 1024;
/** The producer sends a frame at this size (characters). */
const FRAME_SIZE = 32 * 1024;
/** The next step of a generator may block the event loop. So at most this part of the yielded items waits to be sent. */
const WAITING_PART = 1 / 8;
/** The largest number of bytes that one character of an item takes. */
const MOST_BYTES = 6;

const HAS_NEWLINE = /[\n\r]/;

export class Items {
  /** Items in frames so far. */
  number = 0;
  /** The output was over its limit. */
  overflow = false;
  #run;
  #channel;
  #limits;
  #paced;
  /** Yielded and not yet in a frame. @type {string[]} */
  #pending = [];
  #size = 0;
  /** The kind of every item in `#pending`. @type {'s' | 'j'} */
  #kind = 's';
  /** Yielded items. */
  #count = 0;
  #bytes = 0;
  /** The producer waits at this number of items. */
  #allowed;
  #window = FIRST_WINDOW;
  #taken = 0;
  #takenBytes = 0;
  /** Number of the last item, and bytes up to its end, of each frame without credit. @type {[number, number][]} */
  #sent = [];
  #stopped = false;
  /** Lets the producer continue. @type {(() => void) | undefined} */
  #wake;

  /**
   * @param {import('./run.mjs').Run} run
   * @param {import('./channel.mjs').Channel} channel
   * @param {import('./types.d.ts').Limits} limits
   */
  constructor(run, channel, limits) {
    this.#run = run;
    this.#channel = channel;
    this.#limits = limits;
    this.#paced = run.paced;
    this.#allowed = run.paced ? FIRST_WINDOW : Number.POSITIVE_INFINITY;
  }

  /**
   * Takes an item. Returns whether the producer has to wait for credit or a turn of the event loop before the next item.
   *
   * @param {unknown} item
   */
  add(item) {
    const isText = typeof item === 'string';
    const text = isText ? item : encode(item);
    const kind = isText ? 's' : 'j';
    if (kind !== this.#kind) {
      this.seal();
      this.#kind = kind;
    }
    if (text.length > this.#limits.item / MOST_BYTES && Buffer.byteLength(text) > this.#limits.item)
      throw new TooLarge(`an item is over ${this.#limits.item} bytes`);
    this.#pending.push(text);
    this.#count++;
    this.#size += text.length;
    if (this.#count >= this.#allowed || this.#size >= FRAME_SIZE || now() >= this.#channel.dueAt) {
      this.seal();
      this.#channel.flush();
      return true;
    }
    if (this.#pending.length <= this.#count * WAITING_PART) {
      this.#run.sealSoon();
      return false;
    }
    // Without a turn of the event loop, which costs several times as much as the write.
    this.seal();
    this.#channel.write();
    return this.#channel.isFull || this.overflow || this.#mustWait;
  }

  /**
   * Sends a piece of a body. The producer has to call `missesCredit` before the next piece.
   *
   * @param {Buffer} piece
   */
  addBytes(piece) {
    this.seal();
    this.#emit('b', 1, piece);
    this.#count = this.number;
    this.#channel.flush();
  }

  /** Moves the printed lines, then the pending items, into frames on the channel's queue. */
  seal() {
    this.#run.lines?.seal();
    const pending = this.#pending;
    this.#pending = [];
    this.#size = 0;
    for (let start = 0; start < pending.length; start += FRAME_ITEMS) {
      const items = pending.length <= FRAME_ITEMS ? pending : pending.slice(start, start + FRAME_ITEMS);
      if (this.#kind === 'j') this.#emitTexts('j', items);
      else this.#sealTexts(items);
    }
  }

  /** Throws if the output is over its limit. */
  checkOverflow() {
    if (this.overflow) throw new TooLarge(`the run's output is over ${this.#limits.output} bytes`);
  }

  /**
   * Records that a reader, or the store of a run without pacing, has `number` items.
   *
   * @param {number} number
   */
  credit(number) {
    if (number <= this.#taken) return;
    this.#taken = number;
    let done = 0;
    for (; done < this.#sent.length; done++) {
      const [last, bytes] = /** @type {[number, number]} */ (this.#sent[done]);
      if (last > number) break;
      this.#takenBytes = bytes;
    }
    this.#sent.splice(0, done);
    if (this.#paced) {
      this.#window = Math.min(this.#window * 2, LARGEST_WINDOW);
      this.#allowed = number + this.#window;
    }
    if (!this.#mustWait && this.#allowed - this.number >= this.#window * RESUMING_PART) this.#wakeProducer();
  }

  /** Makes a waiting producer continue: the run is cancelled. */
  stop() {
    this.#stopped = true;
    this.#wakeProducer();
  }

  /**
   * Resolves when the producer may continue: after credits if the window is used up.
   *
   * @returns {Promise<void> | undefined} undefined if no credit is missing
   */
  missesCredit() {
    if (!this.#mustWait) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  get #mustWait() {
    if (this.#stopped || this.overflow) return false;
    return this.number >= this.#allowed || this.#bytes - this.#takenBytes >= WINDOW_BYTES;
  }

  #wakeProducer() {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** @param {string[]} items */
  #sealTexts(items) {
    /** @type {string[]} */
    let plain = [];
    for (const item of items) {
      if (!HAS_NEWLINE.test(item)) {
        plain.push(item);
        continue;
      }
      this.#emitTexts('s', plain);
      plain = [];
      this.#emitTexts('m', [item]);
    }
    this.#emitTexts('s', plain);
  }

  /**
   * @param {'s' | 'j' | 'm'} kind
   * @param {string[]} items
   */
  #emitTexts(kind, items) {
    if (this.overflow || items.length === 0) return;
    if (this.#emit(kind, items.length, items.join('\n'))) return;
    const sent = fitting(items, this.#limits.output - this.#bytes);
    if (sent.length > 0) this.#put(kind, sent.length, sent.join('\n'));
  }

  /**
   * Returns whether the items are within the limit of the output.
   *
   * @param {'s' | 'j' | 'm' | 'b'} kind
   * @param {number} count
   * @param {string | Buffer} blob
   */
  #emit(kind, count, blob) {
    if (this.overflow) return false;
    if (!this.#paced && this.#bytes + Buffer.byteLength(blob) > this.#limits.output) {
      this.overflow = true;
      return false;
    }
    this.#put(kind, count, blob);
    return true;
  }

  /**
   * @param {'s' | 'j' | 'm' | 'b'} kind
   * @param {number} count
   * @param {string | Buffer} blob
   */
  #put(kind, count, blob) {
    const length = Buffer.byteLength(blob);
    this.number += count;
    this.#bytes += length;
    this.#sent.push([this.number, this.#bytes]);
    const header = `{"r":"${this.#run.id}","k":"${kind}","n":${count},"b":${length}}\n`;
    if (typeof blob === 'string') this.#channel.put(header + blob);
    else {
      this.#channel.put(header);
      this.#channel.put(blob);
    }
  }
}

/**
 * Returns the items at the start that fit in `room` bytes, with the newlines between them.
 *
 * @param {string[]} items
 * @param {number} room
 */
function fitting(items, room) {
  let size = -1;
  const end = items.findIndex((item) => {
    size += Buffer.byteLength(item) + 1;
    return size > room;
  });
  return items.slice(0, end === -1 ? items.length : end);
}
