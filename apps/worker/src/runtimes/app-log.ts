// Contract 2, "Errors": writes the output of apps to the worker's log too, within a rate.
import type { ErrorFields } from '@inference-proxy/contracts';
import type { PrintedLines } from './printed-lines.ts';
import { TracebackLines } from './traceback-lines.ts';

interface LinesLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** Removes the traceback, because the app prints it too. */
export const withoutTraceback = ({ traceback: _printed, ...rest }: ErrorFields): ErrorFields => rest;

/** Limits lines a second. An app that prints in a loop must neither hide the lines of other apps nor slow the worker. */
export class LineRate {
  readonly #perSecond: number;
  #since = 0;
  #lines = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Returns how many of `wanted` lines may be written now. */
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

/** Writes lines with the names of their app, and reports the number of dropped lines. */
export class AppLog {
  readonly #logger: LinesLogger;
  readonly #names: object;
  readonly #rates: readonly LineRate[];
  readonly #tracebacks = new TracebackLines();
  #leftOut = 0;

  /** @param rates a line needs room in each of them */
  constructor(logger: LinesLogger, names: object, rates: readonly LineRate[]) {
    this.#logger = logger;
    this.#names = names;
    this.#rates = rates;
  }

  lines(printed: PrintedLines, more: object = {}): void {
    const room = this.#rates.reduce((wanted, rate) => rate.take(wanted), printed.count);
    if (room > 0) {
      this.logLeftOut();
      for (const { stream, text } of printed.lines().slice(0, room)) {
        const fields = { ...this.#names, ...more, stream };
        // With `traceback`, the pretty format omits the fields (packages/platform/src/logging.ts).
        if (stream === 'stderr' && this.#tracebacks.has(text)) this.#logger.error({ ...fields, traceback: true }, text);
        else this.#logger.info(fields, text);
      }
    }
    this.#leftOut += printed.count - room + printed.cut;
  }

  /** Logs the number of dropped lines. Call it after the last line too. */
  logLeftOut(): void {
    if (this.#leftOut === 0) return;
    this.#logger.warn(
      { ...this.#names, leftOut: this.#leftOut },
      'lines were dropped: the app printed too many in one second',
    );
    this.#leftOut = 0;
  }
}
