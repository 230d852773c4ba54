// CONTRIBUTING.md, "Plain English": the bar for comments, docstrings, pages and test names.
import { describe, expect, test } from '@jest/globals';
import { root } from '../markdown.ts';
import { sentencesOf, sentencesOfRepository } from './prose.ts';
import { HARD, RIDDLE, score } from './score.ts';

/** Hard sentences and riddles allowed in 1,000. */
const HARD_ALLOWED = 12;
const RIDDLES_ALLOWED = 1;

describe('a score', () => {
  test.each([
    ['What those are told who go on from here is not what they have seen before.'],
    ['Who wanted the outcome alone stays, too, and means nothing any more: to take it off is a command of its own.'],
    ['It does not wait, for the store is told nothing of what nobody reads, and there is no more that it would need.'],
  ])('of %j is hard', (sentence) => {
    expect(score(sentence).points).toBeGreaterThanOrEqual(HARD);
  });

  test.each([
    ['The trace context passed to the next service.'],
    ['Followers of the outcome stay in the record.'],
    ['A run that is accepted without a reader starts its `onDisconnect` timer immediately.'],
    ['Emits the entries after the cursor in order, each exactly once, then completes with the outcome.'],
  ])('of %j is plain', (sentence) => {
    expect(score(sentence)).toEqual({ points: 0, reasons: [] });
  });

  test('grows with the words beyond 25', () => {
    const words = (count: number): string => `${'word '.repeat(count).trim()}.`;
    expect(score(words(25)).points).toBe(0);
    expect(score(words(30)).points).toBeGreaterThan(0);
    expect(score(words(60)).points).toBeGreaterThan(RIDDLE);
  });
});

describe('prose is found', () => {
  const found = (file: string, text: string): string[] => sentencesOf(file, text).map((sentence) => sentence.text);

  test('in comments, docstrings and test names of TypeScript, and not in code', () => {
    const text = [
      '// The first line names the section.',
      "const text = 'this is a string of code';",
      '/**',
      ' * Returns the number of open slots.',
      ' *',
      ' * @param limit the highest number of slots',
      ' */',
      "test('a reader receives each item once', () => {",
      '  call(); // The call has no effect here.',
    ].join('\n');
    expect(found('a.ts', text)).toEqual([
      'The first line names the section.',
      'Returns the number of open slots.',
      '@param limit the highest number of slots',
      'a reader receives each item once',
      'The call has no effect here.',
    ]);
  });

  test('in comments and docstrings of Python, and in comments of Lua', () => {
    const python = ['def f():', '    """Returns the next frame."""', '    # The pipe may be closed here.', '    x = 1'];
    expect(found('a.py', python.join('\n'))).toEqual(['Returns the next frame.', 'The pipe may be closed here.']);
    expect(found('a.lua', "-- Ends the attempts of a run.\nlocal x = 'a b c d e'")).toEqual([
      'Ends the attempts of a run.',
    ]);
  });

  test('in paragraphs, list items and table cells of pages, and not in code blocks', () => {
    const text =
      '# A title of the page\n\nOne line of\nthe first paragraph.\n\n- an item of the list\n\n| a cell of the table | x |\n\n```\nno prose in this block\n```';
    expect(found('a.md', text)).toEqual([
      'One line of the first paragraph.',
      'an item of the list',
      'a cell of the table',
    ]);
  });
});

test('at most 12 sentences in 1,000 of the repository are hard, and at most 1 in 1,000 is a riddle', () => {
  const all = sentencesOfRepository(root).map((sentence) => ({ ...sentence, ...score(sentence.text) }));
  const listed = (least: number): string[] =>
    all
      .filter(({ points }) => points >= least)
      .map(({ file, line, text, reasons }) => `${file}:${line} ${text} (${reasons.join('; ')})`);
  const hard = listed(HARD);
  const riddles = listed(RIDDLE);
  expect(hard.length > (all.length * HARD_ALLOWED) / 1000 ? hard : []).toEqual([]);
  expect(riddles.length > (all.length * RIDDLES_ALLOWED) / 1000 ? riddles : []).toEqual([]);
});
