// What the terminal shows: every part's lines under its name, and our own words between them.
import type { Readable } from 'node:stream';

const LONGEST_LINE = 64 * 1024;
const COLOURS = ['36', '35', '33', '34', '32', '31'];

/** The lines of a stream; one that is longer than 64 KiB is cut into several, so that nothing piles up. */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let rest = '';
  stream.setEncoding('utf8');
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > LONGEST_LINE) {
      yield rest;
      rest = '';
    }
  }
  if (rest) yield rest;
}

/** Where lines go: standard output, or a test's list. */
export interface Sink {
  write(text: string): boolean;
  once(event: 'drain', listener: () => void): unknown;
  readonly isTTY?: boolean;
}

export class Output {
  readonly #sink: Sink;
  readonly colours: boolean;
  readonly #width: number;
  readonly #names: readonly string[];
  /** One wait for a full pipe, however many parts have lines for it. */
  #drained: Promise<void> | undefined;

  constructor(names: readonly string[], sink: Sink = process.stdout, colours = sink.isTTY === true) {
    this.#names = names;
    this.#sink = sink;
    this.colours = colours;
    this.#width = Math.max(...names.map((name) => name.length));
  }

  /** Words of the stack itself. */
  readonly say = (text: string): void => {
    this.#write(`${this.#paint('1', text)}\n`);
  };

  /** Text as it is. */
  plain(text: string): void {
    this.#write(`${text}\n`);
  }

  /** Shows a part's output until it ends; while the terminal does not take more, nothing more is read from it. */
  async follow(name: string, stream: Readable): Promise<void> {
    const colour = COLOURS[this.#names.indexOf(name) % COLOURS.length] ?? '37';
    const prefix = this.#paint(colour, `${name.padEnd(this.#width)} |`);
    for await (const line of linesOf(stream)) {
      this.#write(`${prefix} ${line}\n`);
      await this.#drained;
    }
  }

  #paint(code: string, text: string): string {
    return this.colours ? `\x1b[${code}m${text}\x1b[0m` : text;
  }

  #write(text: string): void {
    if (this.#sink.write(text) || this.#drained) return;
    this.#drained = new Promise((resolve) => {
      this.#sink.once('drain', () => {
        this.#drained = undefined;
        resolve();
      });
    });
  }
}
