// Contract 6: writes log lines to standard output in production. Lines wait for a batch, because a system call for each costs more than the line.
import fs from 'node:fs';

/** The longest wait of a line that does not fill a batch. */
const LONGEST_WAIT_MS = 200;
/** Bounds the characters that wait for an output without a reader (a paused terminal, a log driver that hangs). */
const MOST_WAITING = 16 * 1024 * 1024;
const RETRY_MS = 20;
/** At the end of the process, a full pipe is given this time without progress, and the next constant in total. */
const LAST_STALLED_MS = 1_000;
const LAST_MS = 5_000;
const LAST_RETRY_MS = 5;
const NOTHING = Buffer.alloc(0);

/**
 * Writes lines to a descriptor in order. Waiting lines are written when the process ends, except after SIGKILL.
 *
 * The thread that logs also writes: a pipe accepts a batch in about 10 µs or reports at once that it is full. If another thread wrote, the end
 * of the process could cut its write anywhere. In batches of 32 Ki characters, a line of 250 costs 2 to 4 µs in all (measured). With sonic-boom,
 * which is fastest in batches of 4 KiB, it costs 13 µs.
 */
export class LineOutput {
  readonly #fd: number;
  readonly #batch: number;
  readonly #onDropped: (dropped: number) => void;
  #waiting = '';
  /** The bytes of the current write that the descriptor has not accepted yet. */
  #rest: Buffer = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  /** True after the reader has closed its end. */
  #closed = false;
  readonly #flushes: (() => void)[] = [];

  /**
   * @param fd the service never waits for a pipe or socket, and its end waits only briefly
   * @param batch the number of characters that are written at once
   * @param onDropped called with the number of dropped lines when the output has room again
   */
  constructor(fd: number, batch: number, onDropped: (dropped: number) => void) {
    this.#fd = fd;
    this.#batch = batch;
    this.#onDropped = onDropped;
    // Access to `process.stdout` makes Node set a pipe or socket to non-blocking mode.
    if (fd === 1) process.stdout.on('error', () => {});
    process.once('exit', () => this.#last());
  }

  /** Adds a line to the batch. @param line with its newline */
  write(line: string): void {
    if (this.#closed) return;
    if (this.#waiting.length + this.#rest.length + line.length > MOST_WAITING) {
      this.#dropped += 1;
      return;
    }
    this.#waiting += line;
    if (this.#rest.length > 0) return;
    if (this.#waiting.length >= this.#batch) this.#out();
    else this.#timer ??= setTimeout(() => this.#out(), LONGEST_WAIT_MS).unref();
  }

  /** Resolves when all waiting lines are written or dropped. */
  flush(): Promise<void> {
    return new Promise((resolve) => {
      this.#flushes.push(resolve);
      this.#out();
    });
  }

  /** Drops all waiting lines and all later lines. */
  close(): void {
    this.#closed = true;
    this.#waiting = '';
    this.#rest = NOTHING;
    clearTimeout(this.#timer);
    for (const resolve of this.#flushes.splice(0)) resolve();
  }

  #out(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const wrote = this.#give();
    if (wrote === 'full') {
      this.#timer = setTimeout(() => this.#out(), RETRY_MS).unref();
      return;
    }
    if (wrote === 'gone') {
      this.close();
      return;
    }
    const lines = this.#dropped;
    this.#dropped = 0;
    if (lines > 0) this.#onDropped(lines);
    for (const resolve of this.#flushes.splice(0)) resolve();
  }

  /** Writes waiting lines until the descriptor is full. */
  #give(): 'all' | 'full' | 'gone' {
    try {
      for (;;) {
        if (this.#rest.length === 0) {
          if (this.#waiting === '') return 'all';
          this.#rest = Buffer.from(this.#waiting);
          this.#waiting = '';
        }
        this.#rest = this.#rest.subarray(fs.writeSync(this.#fd, this.#rest));
      }
    } catch (error) {
      // Every other error (a full disk) may be temporary.
      return (error as NodeJS.ErrnoException).code === 'EPIPE' ? 'gone' : 'full';
    }
  }

  #last(): void {
    const clock = new Int32Array(new SharedArrayBuffer(4));
    const started = performance.now();
    let moved = started;
    let left = Number.POSITIVE_INFINITY;
    while (this.#give() === 'full') {
      const now = performance.now();
      if (this.#rest.length < left) {
        left = this.#rest.length;
        moved = now;
      }
      if (now - moved > LAST_STALLED_MS || now - started > LAST_MS) return;
      Atomics.wait(clock, 0, 0, LAST_RETRY_MS);
    }
  }
}
