// Contract 7, "Apps": the last lines that an app printed while it started. A person reads them if the start failed.
import type { StartLine } from '@inference-proxy/contracts';
import type { PrintedLines } from './printed-lines.ts';

const MOST_LINES = 100;
const MOST_CHARACTERS = 8_000;

export class StartLog {
  #lines: StartLine[] = [];

  /** The newest lines, oldest first. */
  get lines(): readonly StartLine[] {
    return this.#lines;
  }

  /** Forgets the lines of an earlier start. */
  clear(): void {
    this.#lines = [];
  }

  /** Adds lines and drops the oldest beyond the bound. */
  add(printed: PrintedLines): void {
    const all = [...this.#lines, ...printed.lines().slice(-MOST_LINES)];
    let characters = 0;
    const kept = all.findLastIndex(({ text }) => {
      characters += text.length;
      return characters > MOST_CHARACTERS;
    });
    this.#lines = all.slice(Math.max(kept + 1, all.length - MOST_LINES));
  }
}
