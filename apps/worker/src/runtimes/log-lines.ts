// Contract 5, `/logs`: what C code and child processes print goes past the harness, on the raw pipes; here it becomes lines.

const NEWLINE = 0x0a;
const LINE_LIMIT = 8 * 1024;

/** Lines from chunks, those of one chunk together; a longer line than 8 KiB is cut into several. */
export class LogLines {
  readonly #onLines: (texts: string[]) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(onLines: (texts: string[]) => void) {
    this.#onLines = onLines;
  }

  /** Returns how many lines ended. */
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

  /** What was printed last, without a newline. */
  end(): void {
    if (this.#rest.length > 0) this.#onLines([this.#rest.toString()]);
    this.#rest = Buffer.alloc(0);
  }
}
