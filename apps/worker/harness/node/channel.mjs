// PROTOCOL.md, "Framing": fd 3. Sends the frames of one turn of the event loop as one write, and cuts received bytes into frames.
import { Socket } from 'node:net';
import { streamOf } from './bun-stream.mjs';
import { immediate, now } from './clock.mjs';
import { FrameReader } from './frame-reader.mjs';
import { endGroup } from './process.mjs';

/** A frame is sent immediately if the last write was so long ago (ms). */
const FRAME_AGE_MS = 1;
/** Producers wait while so many bytes are not on the pipe yet. */
const HELD_BYTES = 256 * 1024;

export class Channel {
  /** Called for each message of the worker. @type {(header: import('./types.d.ts').WorkerMessage, blob: Buffer) => void} */
  onMessage = () => {};
  /** From this time on, a frame is sent immediately. */
  dueAt = 0;
  #socket;
  /** Frames as text, and blobs that are bytes. @type {(string | Buffer)[]} */
  #queue = [];
  #flushDue = false;
  /** Shared by all waiting producers, because each listener of a socket costs and Node warns from eleven on. @type {Promise<void> | undefined} */
  #drained;

  /** @param {number} fd a descriptor of the protocol */
  constructor(fd) {
    const reader = new FrameReader((header, blob) => this.onMessage(header, blob));
    // Node's types do not have the options of its streams here.
    const options = { fd, readable: true, writable: true, writableHighWaterMark: HELD_BYTES };
    this.#socket = process.versions.bun === undefined ? new Socket(options) : streamOf(fd);
    this.#socket.on('data', (chunk) => reader.push(chunk));
    this.#socket.on('end', endGroup);
    this.#socket.on('close', endGroup);
    this.#socket.on('error', endGroup); // the worker's end is closed, so no results can be delivered
  }

  /**
   * Queues a message. The end of this turn of the event loop sends it.
   *
   * @param {object} header
   * @param {string | Buffer} [blob]
   */
  send(header, blob) {
    if (blob === undefined) this.put(`${JSON.stringify(header)}\n`);
    else if (typeof blob === 'string') this.put(frame(header, blob));
    else {
      this.put(`${JSON.stringify({ ...header, b: blob.length })}\n`);
      this.put(blob);
    }
  }

  /**
   * Queues a frame as text, or a blob after its header.
   *
   * @param {string | Buffer} part
   */
  put(part) {
    this.#queue.push(part);
    if (this.#flushDue) return;
    this.#flushDue = true;
    immediate(() => {
      this.#flushDue = false;
      this.flush();
    });
  }

  /** Writes the queue, and begins the time until `dueAt`. */
  flush() {
    if (this.#queue.length === 0) return;
    this.write();
    this.dueAt = now() + FRAME_AGE_MS;
  }

  /** Writes the queue. The bytes are on the pipe at the return, unless the pipe is full. */
  write() {
    if (this.#queue.length > 0) this.#socket.write(this.#queued());
  }

  /** Whether the pipe is full and much waits for the worker. */
  get isFull() {
    return this.#socket.writableNeedDrain;
  }

  /**
   * Resolves when the worker has read what waits.
   *
   * @returns {Promise<void>}
   */
  drained() {
    this.#drained ??= new Promise((resolve) => {
      this.#socket.once('drain', () => {
        this.#drained = undefined;
        resolve();
      });
    });
    return this.#drained;
  }

  /**
   * Sends the process's last message, and resolves when all frames are on the pipe.
   *
   * @param {object} header
   * @returns {Promise<void>}
   */
  finish(header) {
    this.send(header);
    return new Promise((resolve) => {
      this.#socket.write(this.#queued(), () => resolve());
    });
  }

  /** Empties the queue. Returns its content. */
  #queued() {
    const queue = this.#queue;
    this.#queue = [];
    if (queue.every((part) => typeof part === 'string')) return queue.join('');
    return Buffer.concat(queue.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  }
}

/**
 * Returns a message with a blob as text.
 *
 * @param {object} header
 * @param {string} blob
 */
const frame = (header, blob) => `${JSON.stringify({ ...header, b: Buffer.byteLength(blob) })}\n${blob}`;
