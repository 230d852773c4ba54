// harness/PROTOCOL.md, `log`: lines that were printed, read only by who shows them; a flood is dropped unread.
import type { LogLine } from './runtime.ts';

/** What a line counts beside its bytes, here and in the harness alike, so that a flood of empty ones is bounded too. */
export const LINE_COST = 16;

const NEWLINE = 0x0a;
const STDERR = 'e'.charCodeAt(0);

/** Consecutive lines, oldest first. */
export class PrintedLines {
  /** How many lines. */
  readonly count: number;
  /** How many were left out just before them. */
  readonly cut: number;
  /** What they count towards the limit of a run's log. */
  readonly cost: number;
  readonly #blob: Buffer;

  /** @param blob each line as `o` or `e`, Unix ms, a space, the text; joined by newlines */
  constructor(blob: Buffer, count: number, cut = 0) {
    this.#blob = blob;
    this.count = count;
    this.cut = cut;
    this.cost = blob.length + count * LINE_COST;
  }

  /** Lines from outside the interpreter, printed just now. */
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
