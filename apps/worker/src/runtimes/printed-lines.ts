// harness/PROTOCOL.md, "Lines": printed lines that are decoded only when they are shown, so that a flood is dropped without decoding.
/** One line of output from a function or its child processes. */
export interface LogLine {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
  /** When it was printed, Unix milliseconds. */
  readonly at: number;
}

/** The cost of a line beside its bytes, also in the harness, so that a flood of empty lines is bounded too. */
export const LINE_COST = 16;

const NEWLINE = 0x0a;
const STDERR = 'e'.charCodeAt(0);

/** Consecutive lines, oldest first. */
export class PrintedLines {
  readonly count: number;
  /** The number of lines dropped just before these lines. */
  readonly cut: number;
  /** The cost of the lines, towards the limit of a run's log. */
  readonly cost: number;
  readonly #blob: Buffer;

  /** @param blob each line as `o` or `e`, Unix ms, a space and the text. The lines are joined by newlines. */
  constructor(blob: Buffer, count: number, cut = 0) {
    this.#blob = blob;
    this.count = count;
    this.cut = cut;
    this.cost = blob.length + count * LINE_COST;
  }

  /** Returns lines from outside the interpreter with the current time. */
  static now(stream: LogLine['stream'], texts: readonly string[]): PrintedLines {
    const start = `${stream === 'stderr' ? 'e' : 'o'}${Date.now()} `;
    return new PrintedLines(Buffer.from(texts.map((text) => start + text).join('\n')), texts.length);
  }

  lines(): LogLine[] {
    const blob = this.#blob;
    const lines: LogLine[] = [];
    for (let at = 0; at < blob.length; ) {
      const found = blob.indexOf(NEWLINE, at);
      const end = found === -1 ? blob.length : found;
      const line = blob.toString('utf8', at + 1, end);
      const space = line.indexOf(' ');
      lines.push({
        at: Number(line.slice(0, space)),
        stream: blob[at] === STDERR ? 'stderr' : 'stdout',
        text: line.slice(space + 1),
      });
      at = end + 1;
    }
    return lines;
  }
}
