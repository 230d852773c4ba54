// Contract 2, "Errors": what apps print, in the worker's own log too, so many lines a second.
import type { ErrorFields } from '@inference-proxy/contracts';
import type { PrintedLines } from './printed-lines.ts';
import { TracebackLines } from './traceback-lines.ts';

interface LinesLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** The app prints its traceback itself, line by line. */
export const withoutTraceback = ({ traceback: _printed, ...rest }: ErrorFields): ErrorFields => rest;

/** So many lines a second: an app that prints in a loop must not drown the others' lines, nor the worker in writing them. */
export class LineRate {
  readonly #perSecond: number;
  #since = 0;
  #lines = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** How many of `wanted` lines may be written now. */
  take(wanted: number): number {
    const now = performance.now();
    if (now - this.#since >= 1_000) {
      this.#since = now;
      this.#lines = 0;
    }
    const granted = Math.min(wanted, this.#perSecond - this.#lines);
    this.#lines += granted;
    return granted;
  }
}

/** Writes lines under the names of what printed them, and tells how many were left out. */
export class AppLog {
  readonly #logger: LinesLogger;
  readonly #names: object;
  readonly #rates: readonly LineRate[];
  readonly #tracebacks = new TracebackLines();
  #leftOut = 0;

  /** @param rates all of which must allow a line */
  constructor(logger: LinesLogger, names: object, rates: readonly LineRate[]) {
    this.#logger = logger;
    this.#names = names;
    this.#rates = rates;
  }

  lines(printed: PrintedLines, more: object = {}): void {
    const room = this.#rates.reduce((wanted, rate) => rate.take(wanted), printed.count);
    if (room > 0) {
      this.tellLeftOut();
      for (const { stream, text } of printed.lines().slice(0, room)) {
        const fields = { ...this.#names, ...more, stream };
        // `traceback`: lines for people have no fields then (packages/platform/src/logging.ts).
        if (stream === 'stderr' && this.#tracebacks.has(text)) this.#logger.error({ ...fields, traceback: true }, text);
        else this.#logger.info(fields, text);
      }
    }
    this.#leftOut += printed.count - room + printed.cut;
  }

  /** To be called when nothing more comes. */
  tellLeftOut(): void {
    if (this.#leftOut === 0) return;
    this.#logger.warn({ ...this.#names, leftOut: this.#leftOut }, 'lines were left out: too many in one second');
    this.#leftOut = 0;
  }
}
