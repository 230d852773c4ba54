// The output in the terminal: the lines of every part under its name, and the messages of the stack between them.
import type { Readable } from 'node:stream';

const LONGEST_LINE = 64 * 1024;
const COLOURS = ['36', '35', '33', '34', '32', '31'];

/** Yields the lines of a stream. Cuts a line longer than 64 KiB into several lines, to bound the memory. */
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

/** The target of the lines: standard output, or a test's list. */
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
  /** One wait for a full pipe, shared by all parts that have lines for the pipe. */
  #drained: Promise<void> | undefined;

  constructor(names: readonly string[], sink: Sink = process.stdout, colours = sink.isTTY === true) {
    this.#names = names;
    this.#sink = sink;
    this.colours = colours;
    this.#width = Math.max(...names.map((name) => name.length));
  }

  /** Writes a message of the stack. */
  readonly say = (text: string): void => {
    this.#write(`${this.#paint('1', text)}\n`);
  };

  /** Writes text without a style. */
  plain(text: string): void {
    this.#write(`${text}\n`);
  }

  /** Shows a part's output until it ends. Reads no further line while the terminal accepts none. */
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
