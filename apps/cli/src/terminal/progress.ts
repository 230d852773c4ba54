// The progress of a long command on standard error: a bar in a terminal, lines in a pipe, nothing with `--json`.
import { progress } from '@clack/prompts';
import { EXIT_CODES } from '../service/failures.ts';

const KIB = 1024;

/** Returns a number of bytes for people. */
export function bytes(count: number): string {
  if (count < KIB) return `${count} bytes`;
  if (count < KIB * KIB) return `${(count / KIB).toFixed(1)} KiB`;
  return `${(count / KIB / KIB).toFixed(1)} MiB`;
}

/** A bar that grows with the sent bytes. */
export interface Bar {
  advance(count: number): void;
  /** Ends the bar with a text. */
  end(text: string): void;
}

export class Progress {
  readonly #shown: boolean;

  /** @param json whether the command writes JSON */
  constructor(json: boolean) {
    this.#shown = !json;
  }

  line(text: string): void {
    if (this.#shown) process.stderr.write(`${text}\n`);
  }

  /** Begins a bar of `total` bytes. */
  bar(text: string, total: number): Bar {
    if (!this.#shown || process.stderr.isTTY !== true) return { advance: () => {}, end: (ended) => this.line(ended) };
    const bar = progress({ max: total, output: process.stderr });
    // The library reads Ctrl-C from the keyboard, and ends the program with 0.
    const interrupted = (): void => {
      process.exitCode = EXIT_CODES.interrupted.code;
    };
    process.once('exit', interrupted);
    bar.start(text);
    let sent = 0;
    return {
      advance(count) {
        sent += count;
        bar.advance(count, `${text}, ${bytes(sent)} of ${bytes(total)}`);
      },
      end(ended) {
        process.off('exit', interrupted);
        bar.stop(ended);
      },
    };
  }
}
