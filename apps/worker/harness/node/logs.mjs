// Contract 5, "Logs: `GET /runs/{run_id}/logs`": assigns each line to the run that prints it, whatever timer or promise of the run prints.
// The descriptors 1 and 2 stay the worker's raw pipes, for native code and child processes.
import { AsyncLocalStorage } from 'node:async_hooks';
import { Writable } from 'node:stream';
import { immediate, timeout } from './clock.mjs';
import { Lines } from './lines.mjs';

/** The run whose code is executing. @type {AsyncLocalStorage<import('./run.mjs').Run>} */
export const currentRun = new AsyncLocalStorage();

/** Lines are sent so late at most (ms). */
const LINES_AGE_MS = 1;

export class Logs {
  #channel;
  #limit;
  /** Takes the lines that are printed outside of every run. */
  #outside;
  /** Objects with waiting lines. @type {Set<Lines>} */
  #waiting = new Set();
  #timerRuns = false;

  /**
   * @param {import('./channel.mjs').Channel} channel
   * @param {number} limit bytes of a run's waiting lines
   */
  constructor(channel, limit) {
    this.#channel = channel;
    this.#limit = limit;
    this.#outside = new Lines(undefined, channel, limit);
  }

  /** Replaces the standard streams. `console` uses them too. */
  replaceStreams() {
    for (const [name, stream] of /** @type {const} */ ([
      ['stdout', 'o'],
      ['stderr', 'e'],
    ])) {
      const fd = name === 'stdout' ? 1 : 2;
      const writer = new LineWriter(fd, (text) => this.print(currentRun.getStore(), stream, text));
      Object.defineProperty(process, name, { value: writer, configurable: true, enumerable: true, writable: true });
    }
  }

  /**
   * Adds output of a run, or of no run.
   *
   * @param {import('./run.mjs').Run | undefined} run
   * @param {import('./lines.mjs').Stream} stream
   * @param {string} text
   */
  print(run, stream, text) {
    let lines = this.#outside;
    if (run !== undefined) lines = run.lines ??= new Lines(run.id, this.#channel, this.#limit);
    if (!lines.write(stream, text)) return;
    this.#waiting.add(lines);
    this.#sendSoon();
  }

  /** Queues every waiting line of no run and of ended runs, before the process ends. */
  finish() {
    for (const lines of this.#waiting) lines.finish();
    this.#outside.finish();
  }

  #sendSoon() {
    if (this.#timerRuns) return;
    this.#timerRuns = true;
    currentRun.exit(() => {
      timeout(() => {
        this.#timerRuns = false;
        this.#send();
      }, LINES_AGE_MS);
    });
  }

  /** Queues a frame of each run. While the pipe is full, lines stay, and the newest displace the oldest. */
  #send() {
    for (const lines of this.#waiting) {
      if (!this.#channel.isFull) lines.seal();
      if (!lines.waits) this.#waiting.delete(lines);
    }
    this.#channel.flush();
    if (this.#waiting.size > 0) immediate(() => this.#sendSoon());
  }
}

/** Replaces process.stdout or process.stderr. A writer never waits. */
class LineWriter extends Writable {
  fd;
  isTTY = false;
  #print;

  /**
   * @param {number} fd the descriptor of the worker's raw pipe
   * @param {(text: string) => void} print
   */
  constructor(fd, print) {
    super({ decodeStrings: false });
    this.fd = fd;
    this.#print = print;
  }

  /**
   * @override
   * @param {string | Uint8Array} chunk
   * @param {BufferEncoding} encoding
   * @param {(error?: Error | null) => void} done
   */
  _write(chunk, encoding, done) {
    this.#print(
      typeof chunk !== 'string'
        ? Buffer.from(chunk).toString()
        : encoding === undefined || encoding === 'utf8' || encoding === 'utf-8'
          ? chunk
          : Buffer.from(chunk, encoding).toString(),
    );
    done();
  }

  /**
   * The streams stay usable, as Node's own do.
   *
   * @override
   * @param {Error | null} _error
   * @param {(error?: Error | null) => void} done
   */
  _destroy(_error, done) {
    done();
  }
}
