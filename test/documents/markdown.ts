// Parses the parts of Markdown that the documents' tests need: code blocks and tables.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

export const page = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Returns the code blocks in a language, in order. */
export const codeBlocks = (text: string, language: string): string[] =>
  [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code = '']) => code);

/** Returns the cells of all table rows below a heading, up to the next heading, without the table's head and rule. */
export function tableRows(text: string, heading: RegExp): string[][] {
  const section = text.split(/^#+ /m).find((one) => heading.test(one.split('\n', 1)[0] ?? '')) ?? '';
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  return rows.slice(2);
}

/** Returns the words of a cell that are in backticks. */
export const ticked = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);
