// Contract 7: the output of a build goes to the version's log in batches, because each report is a call of the store.

const BATCH_MS = 250;
/** Lines of a batch. The store keeps the newest 1,000 lines of a log. */
const MOST_LINES = 200;

export class LogBatches {
  #lines: string[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  readonly #send: (lines: readonly string[]) => void;

  /** @param send receives at least one line */
  constructor(send: (lines: readonly string[]) => void) {
    this.#send = send;
  }

  /** Adds lines. They are sent after a moment, or by `flush`. */
  add(lines: readonly string[]): void {
    this.#lines.push(...lines);
    const over = this.#lines.length - MOST_LINES;
    if (over > 0) this.#lines.splice(0, over);
    this.#dropped += Math.max(0, over);
    this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  /** Sends the lines at once. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#dropped > 0 ? [`${this.#dropped} lines were dropped`, ...this.#lines] : this.#lines;
    this.#lines = [];
    this.#dropped = 0;
    if (lines.length > 0) this.#send(lines);
  }
}
