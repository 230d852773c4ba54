// The output of a command: results on standard output, everything else on standard error. With `--json`, results are JSON.
import type { Failure } from '../service/failures.ts';
import { parseExact, readable } from './exact-json.ts';

export class Output {
  readonly json: boolean;

  constructor(json: boolean) {
    this.json = json;
  }

  /** Whether a person reads standard output. Then a command may ask questions and show progress. */
  get isTerminal(): boolean {
    return process.stdout.isTTY === true && process.stdin.isTTY === true && !this.json;
  }

  /**
   * Writes the result of a command.
   *
   * @param body the JSON of the service, or of this program
   * @param text returns the form for people
   */
  result(body: string, text: () => string): void {
    process.stdout.write(this.json ? `${body.trimEnd()}\n` : lineOf(text()));
  }

  /** Writes one of many results. With `--json`, each result is one line. */
  item(body: unknown, text: () => string): void {
    process.stdout.write(this.json ? `${JSON.stringify(body)}\n` : lineOf(text()));
  }

  /** Writes a remark for a person on standard error, if standard error is a terminal. */
  remark(text: string): void {
    if (!this.json && process.stderr.isTTY === true) process.stderr.write(lineOf(text));
  }

  /** Writes text on standard error, also into a pipe. */
  aside(text: string): void {
    process.stderr.write(lineOf(text));
  }

  failure(failure: Failure): void {
    process.stderr.write(this.json ? `${JSON.stringify(failure.body)}\n` : lineOf(failure.message));
  }
}

const lineOf = (text: string): string => (text.endsWith('\n') || text === '' ? text : `${text}\n`);

/** Returns rows as aligned columns. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows];
  const widths = headings.map((_, at) => Math.max(...all.map((row) => (row[at] ?? '').length)));
  return all
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Returns the fields of a JSON object as lines. Objects and lists are indented JSON. */
export function fields(json: string): string {
  const entries = Object.entries(parseExact(json) as Record<string, unknown>);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${readable(value)}`).join('\n');
}
