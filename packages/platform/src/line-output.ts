// Contract 6: where log lines go in production. They wait for others, since a system call each would cost more than the line does.
import fs from 'node:fs';

/** For lines that make no batch. */
const LONGEST_WAIT_MS = 200;
/** An output that nobody takes up (a paused terminal, a log driver that hangs) costs this many characters and no more. */
const MOST_WAITING = 16 * 1024 * 1024;
const RETRY_MS = 20;
/** At the end a full pipe is waited for: so long while nobody takes anything, and so long in all. */
const LAST_STALLED_MS = 1_000;
const LAST_MS = 5_000;
const LAST_RETRY_MS = 5;
const NOTHING = Buffer.alloc(0);

/**
 * A descriptor that lines are written to, in order. What waits when the process ends, by whatever way but SIGKILL, is written then.
 *
 * Written by the thread that logs: a pipe takes a batch in some 10 µs or says at once that it is full, and what another thread is writing when
 * the process ends may be cut anywhere. In batches of 32 Ki characters a line of 250 costs 2 to 4 µs with all that is done for it (measured; by
 * sonic-boom, which does best in batches of 4 KiB: 13).
 */
export class LineOutput {
  readonly #fd: number;
  readonly #batch: number;
  readonly #tell: (leftOut: number) => void;
  #waiting = '';
  /** What the descriptor has not taken yet of what it was given. */
  #rest: Buffer = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #leftOut = 0;
  /** Nobody reads it any more. */
  #closed = false;
  readonly #flushes: (() => void)[] = [];

  /**
   * @param fd a pipe or a socket is not waited for: neither by the service's own work nor, for long, by its end
   * @param batch how many characters are written without waiting for more
   * @param tell is called when there is room again, with how many lines had found none
   */
  constructor(fd: number, batch: number, tell: (leftOut: number) => void) {
    this.#fd = fd;
    this.#batch = batch;
    this.#tell = tell;
    // Asked for, Node makes a pipe or socket there non-blocking.
    if (fd === 1) process.stdout.on('error', () => {});
    process.once('exit', () => this.#last());
  }

  /** @param line with its newline */
  write(line: string): void {
    if (this.#closed) return;
    if (this.#waiting.length + this.#rest.length + line.length > MOST_WAITING) {
      this.#leftOut += 1;
      return;
    }
    this.#waiting += line;
    if (this.#rest.length > 0) return;
    if (this.#waiting.length >= this.#batch) this.#out();
    else this.#timer ??= setTimeout(() => this.#out(), LONGEST_WAIT_MS).unref();
  }

  /** Resolves when all that waits is written, or never will be. */
  flush(): Promise<void> {
    return new Promise((resolve) => {
      this.#flushes.push(resolve);
      this.#out();
    });
  }

  /** What waits is dropped, and whatever else comes. */
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
    const lines = this.#leftOut;
    this.#leftOut = 0;
    if (lines > 0) this.#tell(lines);
    for (const resolve of this.#flushes.splice(0)) resolve();
  }

  /** Gives the descriptor what waits, as far as it takes it. */
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
      // Whatever else keeps it from writing (a full disk) may pass.
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
