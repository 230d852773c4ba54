// Contract 5, "Logs: `GET /runs/{run_id}/logs`": lines of C code and child processes, which bypass the harness, from the raw pipes.

const NEWLINE = 0x0a;
const LINE_LIMIT = 8 * 1024;

/** Cuts chunks into lines. Passes on the lines of one chunk together. Cuts a line longer than 8 KiB into several lines. */
export class LogLines {
  readonly #onLines: (texts: string[]) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(onLines: (texts: string[]) => void) {
    this.#onLines = onLines;
  }

  /** Returns the number of lines that ended in `chunk`. */
  push(chunk: Buffer): number {
    const texts: string[] = [];
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = data.subarray(0, LINE_LIMIT).indexOf(NEWLINE);
      if (end !== -1) texts.push(data.toString('utf8', 0, end));
      else if (data.length >= LINE_LIMIT) texts.push(data.toString('utf8', 0, LINE_LIMIT));
      else break;
      data = data.subarray(end === -1 ? LINE_LIMIT : end + 1);
    }
    this.#rest = data;
    if (texts.length > 0) this.#onLines(texts);
    return texts.length;
  }

  /** Passes on the last line if it has no newline. */
  end(): void {
    if (this.#rest.length > 0) this.#onLines([this.#rest.toString()]);
    this.#rest = Buffer.alloc(0);
  }
}
