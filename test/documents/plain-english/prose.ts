// CONTRIBUTING.md, "Plain English": the sentences of comments, docstrings, pages and test names, with their places.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Sentence {
  readonly file: string;
  /** Line of the paragraph's start, from 1. */
  readonly line: number;
  readonly text: string;
}

interface Paragraph {
  readonly line: number;
  text: string;
}

/** A comment line that begins an entry of a list: a bullet, a number, a tag, a named argument. */
const ENTRY = /^\s*([-*•]\s|\d+(-\d+)?[.)]?\s{2,}|\d+[.)]\s|@\w+|(KEYS|ARGV)\b|\S+\s{2,}\S|Returns?\b)/;
const TEST_NAME = /\b(?:test|it|describe)(?:\.\w+)?(?:\([^'"`]*\))?\(\s*(?:'((?:[^'\\]|\\.)+)'|"((?:[^"\\]|\\.)+)")/;
const LINE_COMMENT: Readonly<Record<string, RegExp>> = {
  lua: /(?:^|\s)--(?![[@])\s?(.*)$/,
  py: /(?:^|\s)#(?!!)\s?(.*)$/,
  sh: /^\s*#(?!!)\s?(.*)$/,
  ts: /(?:^|\s)\/\/\s?(.*)$/,
  mjs: /(?:^|\s)\/\/\s?(.*)$/,
};

/** Joins consecutive lines of prose to paragraphs. */
class Paragraphs {
  readonly done: Paragraph[] = [];
  #open: Paragraph | undefined;

  add(line: number, text: string): void {
    if (this.#open) this.#open.text += ` ${text}`;
    else this.#open = { line, text };
  }

  close(): void {
    if (this.#open?.text.trim()) this.done.push(this.#open);
    this.#open = undefined;
  }
}

function ofPage(lines: readonly string[]): Paragraph[] {
  const paragraphs = new Paragraphs();
  let code = false;
  for (const [at, line] of lines.entries()) {
    const fence = /^\s*```/.test(line);
    if (fence) code = !code;
    if (fence || code || /^(#|\s*$|\s*\|[-: |]+\|\s*$)/.test(line)) {
      paragraphs.close();
    } else if (/^\s*\|/.test(line)) {
      paragraphs.close();
      for (const cell of line.split(/(?<!\\)\|/)) {
        paragraphs.add(at + 1, cell);
        paragraphs.close();
      }
    } else {
      if (/^\s*([-*]|\d+\.) /.test(line)) paragraphs.close();
      paragraphs.add(at + 1, line.replace(/^\s*([-*]|\d+\.) /, ''));
    }
  }
  paragraphs.close();
  return paragraphs.done;
}

function ofCode(lines: readonly string[], kind: string): Paragraph[] {
  const paragraphs = new Paragraphs();
  const comment = LINE_COMMENT[kind];
  const [begin, end] = kind === 'py' ? [/^\s*[rb]?"""/, '"""'] : [/^\s*\/\*\*?/, '*/'];
  let block = false;
  for (const [at, line] of lines.entries()) {
    const opens = !block && begin.test(line);
    if (opens) {
      paragraphs.close();
      block = true;
    }
    if (block) {
      const text = line.replace(begin, '').replace(/^\s*\*(?!\/)\s?/, '');
      const closes = (opens ? text : line).includes(end);
      if (ENTRY.test(text)) paragraphs.close();
      paragraphs.add(at + 1, text.replace(end, ''));
      if (closes) {
        block = false;
        paragraphs.close();
      }
      continue;
    }
    const name = TEST_NAME.exec(line);
    const [, text] = comment?.exec(line) ?? [];
    if (name || text === undefined || ENTRY.test(text)) paragraphs.close();
    if (name) {
      paragraphs.add(at + 1, name[1] ?? name[2] ?? '');
      paragraphs.close();
    } else if (text !== undefined) paragraphs.add(at + 1, text);
  }
  paragraphs.close();
  return paragraphs.done;
}

/** Returns the sentences of a file. @param file decides how prose is found in the text: by its ending */
export function sentencesOf(file: string, text: string): Sentence[] {
  const kind = file.slice(file.lastIndexOf('.') + 1);
  const lines = text.split('\n');
  const paragraphs = kind === 'md' ? ofPage(lines) : ofCode(lines, kind);
  return paragraphs.flatMap((paragraph) =>
    paragraph.text
      .replace(/\s+/g, ' ')
      .trim()
      .split(/(?<=[.!?])\s+(?=[A-Z`"])/)
      .filter((sentence) => sentence.split(' ').length > 3)
      .map((sentence) => ({ file, line: paragraph.line, text: sentence })),
  );
}

/** Returns the sentences of every file of the repository that git tracks. */
export function sentencesOfRepository(root: string): Sentence[] {
  return execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((file) => /\.(ts|mjs|py|lua|md|sh)$/.test(file) && existsSync(join(root, file)))
    .flatMap((file) => sentencesOf(file, readFileSync(join(root, file), 'utf8')));
}
