// Contract 2, "Errors": the lines of a Python traceback in the worker's log.
import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { AppLog, LineRate } from './app-log.ts';
import { PrintedLines } from './printed-lines.ts';

/** Returns the lines that a Python program prints on stderr. */
function printedBy(...program: readonly string[]): string[] {
  const script = ['import sys, traceback', ...program].join('\n');
  return execFileSync('python3', ['-c', `${script}\n`, '2>&1'], { encoding: 'utf8' })
    .trimEnd()
    .split('\n');
}

/** Returns the lines of the worker's log: `<level> <text>`. */
function logged(lines: readonly string[], stream: 'stdout' | 'stderr' = 'stderr'): { level: string; text: string }[] {
  const found: { level: string; text: string; fields: object }[] = [];
  const at = (level: string) => (fields: object, text: string) => void found.push({ level, text, fields });
  const log = new AppLog({ info: at('info'), warn: at('warn'), error: at('error') }, { app: 'a' }, [new LineRate(1e6)]);
  for (const line of lines) log.lines(PrintedLines.now(stream, [line]));
  for (const { level, fields } of found) expect('traceback' in fields).toBe(level === 'error');
  return found;
}

const errors = (lines: readonly string[]): string[] =>
  logged(lines)
    .filter(({ level }) => level === 'error')
    .map(({ text }) => text);

test('every line of a traceback is logged as an error, and no line around the traceback', () => {
  const traceback = printedBy('try:', '  int("x")', 'except ValueError:', '  traceback.print_exc(file=sys.stdout)');
  expect(traceback[0]).toBe('Traceback (most recent call last):');
  expect(errors(['WARNING before', ...traceback, 'after', '  indented'])).toEqual(traceback);
});

test('every line of a chained traceback is logged as an error', () => {
  const traceback = printedBy(
    'try:',
    '  try:',
    '    int("x")',
    '  except ValueError as error:',
    '    raise KeyError("y") from error',
    'except KeyError:',
    '  traceback.print_exc(file=sys.stdout)',
  );
  expect(traceback.filter((line) => line.startsWith('Traceback'))).toHaveLength(2);
  expect(errors([...traceback, 'after'])).toEqual(traceback);
});

test('a traceback on stdout is not logged as an error', () => {
  expect(logged(['Traceback (most recent call last):', '  File "x"'], 'stdout').map(({ level }) => level)).toEqual([
    'info',
    'info',
  ]);
});
