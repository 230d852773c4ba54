// Contract 5, "Logs: `GET /runs/{run_id}/logs`": lines from the chunks of a raw pipe.
import { expect, test } from '@jest/globals';
import { LogLines } from './log-lines.ts';

function linesOf(chunks: readonly string[]): string[] {
  const lines: string[] = [];
  const reader = new LogLines((texts) => lines.push(...texts));
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  reader.end();
  return lines;
}

test('chunks of any size become whole lines, also a last line without a newline', () => {
  expect(linesOf(['a\nb', 'c\n\nd'])).toEqual(['a', 'bc', '', 'd']);
});

test('a line without an end is cut, so that its memory is bounded', () => {
  expect(linesOf(['x'.repeat(20_000)]).map((line) => line.length)).toEqual([8192, 8192, 3616]);
});
