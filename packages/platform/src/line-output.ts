// Contract 6: where log lines go in production. They wait for others, since a system call each would cost more than the line does.
import fs from 'node:fs';

/** For lines that make no batch. */
const LONGEST_WAIT_MS = 200;
/** An output that nobody takes up (a paused terminal, a log driver that hangs) costs this many characters and no more. */
const MOST_WAITING = 16 * 1024 * 1024;
const RETRY_MS = 20;
/** At the end a full pipe is waited for that long. */
const LAST_MS = 500;
const LAST_RETRY_MS = 5;
const NOTHING = Buffer.alloc(0);

/**
 * A descriptor that lines are written to, in order. What waits when the process ends, by whatever way but SIGKILL, is written then.
 *
 * In batches of 32 Ki characters a line of 250 costs 2 to 4 µs with all that is done for it (measured; by sonic-boom, which does best in
 * batches of 4 KiB: 13).
 */
export class LineOutput {
  readonly #fd: number;
  readonly #batch: number;
  readonly #tell: (leftOut: number) => void;
  #waiting = '';
  /** What a write is under way for; it may take a part only. */
  #writing: Buffer = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #leftOut = 0;
  /** Nobody reads it any more. */
  #closed = false;
  readonly #flushes: (() => void)[] = [];

  /**
   * @param fd not waited for: neither by the service's own work nor by its end
   * @param batch how many characters are written without waiting for more
   * @param tell is called when there is room again, with how many lines had found none
   */
  constructor(fd: number, batch: number, tell: (leftOut: number) => void) {
    this.#fd = fd;
    this.#batch = batch;
    this.#tell = tell;
    // Asked for, Node makes a pipe or socket there non-blocking. A write that blocks, because whoever has the other end does not read, would
    // hold one of the threads that are waited for when the process ends.
    if (fd === 1) process.stdout.on('error', () => {});
    process.once('exit', () => this.#last());
  }

  /** @param line with its newline */
  write(line: string): void {
    if (this.#closed) return;
    if (this.#waiting.length + this.#writing.length + line.length > MOST_WAITING) {
      this.#leftOut += 1;
      return;
    }
    this.#waiting += line;
    if (this.#writing.length > 0) return;
    if (this.#waiting.length >= this.#batch) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), LONGEST_WAIT_MS).unref();
  }

  /** Resolves when all that waits is written, or never will be. */
  flush(): Promise<void> {
    if (this.#waiting === '' && this.#writing.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushes.push(resolve);
      if (this.#writing.length === 0) this.#begin();
    });
  }

  /** What waits is dropped, and whatever else comes. */
  close(): void {
    this.#closed = true;
    this.#waiting = '';
    this.#writing = NOTHING;
    clearTimeout(this.#timer);
    for (const resolve of this.#flushes.splice(0)) resolve();
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = Buffer.from(this.#waiting);
    this.#waiting = '';
    this.#write();
  }

  #write(): void {
    fs.write(this.#fd, this.#writing, (error, written) => {
      if (this.#closed) return;
      if (error?.code === 'EPIPE') this.close();
      // Full, or busy: it may have room later.
      else if (error) this.#timer = setTimeout(() => this.#write(), RETRY_MS).unref();
      else this.#written(written);
    });
  }

  #written(bytes: number): void {
    this.#writing = this.#writing.subarray(bytes);
    if (this.#writing.length > 0) {
      this.#write();
      return;
    }
    if (this.#leftOut > 0) {
      const lines = this.#leftOut;
      this.#leftOut = 0;
      this.#tell(lines);
    }
    if (this.#waiting === '') for (const resolve of this.#flushes.splice(0)) resolve();
    else if (this.#waiting.length >= this.#batch || this.#flushes.length > 0) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), LONGEST_WAIT_MS).unref();
  }

  /** The process ends: a write under way is finished by its thread, the rest is written here. */
  #last(): void {
    let rest = Buffer.from(this.#waiting);
    this.#waiting = '';
    const until = performance.now() + LAST_MS;
    while (rest.length > 0 && performance.now() < until) {
      try {
        rest = rest.subarray(fs.writeSync(this.#fd, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return; // there is nowhere to tell it
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_RETRY_MS);
      }
    }
  }
}
