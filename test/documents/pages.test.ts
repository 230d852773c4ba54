// The pages and the code agree on error codes, settings and files.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorKinds } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import { page, root, tableRows, ticked } from './markdown.ts';

test('docs/errors.md lists exactly the error codes, with their status', () => {
  const listed = tableRows(page('docs/errors.md'), /^Errors/).map(([code = '', status, retryable]) => [
    ...ticked(code),
    status,
    retryable,
  ]);
  const known = Object.entries(errorKinds).map(([code, kind]) => [
    code,
    `${kind.status}${'retryAfterS' in kind ? ' + `Retry-After`' : ''}`,
    kind.retryable ? 'yes' : 'no',
  ]);
  expect(listed).toEqual(known);
});

const SERVICES = ['gateway', 'worker', 'dispatcher'] as const;

test('docs/contract.md lists the same error codes', () => {
  const listed = tableRows(page('docs/contract.md'), /^Error codes/).map(([code = '', status = '']) => [
    ...ticked(code),
    Number.parseInt(status, 10),
  ]);
  expect(listed).toEqual(Object.entries(errorKinds).map(([code, { status }]) => [code, status]));
});

/** Returns the name, default and meaning of a service's settings from its `--help`. */
function helpOf(service: string): string[][] {
  const help = execFileSync(process.execPath, [join(root, 'apps', service, 'dist', 'bundle', 'main.js'), '--help'], {
    encoding: 'utf8',
  });
  return [...help.matchAll(/^ {2}([A-Z0-9_]+) +(.*) \((default (.*)|required|not set)\)$/gm)].map(
    ([, name = '', meaning = '', kind = '', fallback]) => [
      `\`${name}\``,
      fallback === undefined ? kind : fallback === '' ? 'empty' : `\`${fallback}\``,
      meaning,
    ],
  );
}

test.each(SERVICES)('docs/settings.md lists exactly the settings of the %s, with default and meaning', (service) => {
  const settings = page('docs/settings.md');
  const listed = [...tableRows(settings, /^Every service/), ...tableRows(settings, new RegExp(`^${service}`, 'i'))];
  expect(listed).toEqual(helpOf(service));
});

const FILES = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' }).split(
  '\n',
);
const PAGES = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: root })];

test.each(PAGES)('the files that %s names exist', (name) => {
  const text = page(name).replace(/^```[\s\S]*?^```$/gm, '');
  const linked = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path = '']) => join(dirname(name), path));
  const written = ticked(text).filter((word) =>
    /^(\.\/)?(apps|docs|examples|packages|scripts|test)\/[^\s<>{}…]*$/.test(word),
  );
  const missing = [...linked, ...written].filter((path) =>
    path.includes('*') ? globSync(path, { cwd: root }).length === 0 : !existsSync(join(root, path)),
  );
  // A page may leave out the upper folders of a file.
  const short = ticked(text).filter((word) => /^[\w.-]+(\/[\w.-]+)+\.(ts|tsx|mjs|py|lua)$/.test(word));
  const unknown = short.filter((word) => !FILES.some((file) => `/${file}`.endsWith(`/${word}`)));
  expect([...missing, ...unknown]).toEqual([]);
});

test.each(PAGES)('the lines and the table cells of %s have at most 120 characters', (name) => {
  const lines = page(name)
    .replace(/^```[\s\S]*?^```$/gm, '')
    .split('\n')
    .flatMap((line) => (line.startsWith('|') ? line.split('|').map((cell) => cell.trim()) : [line]));
  expect(lines.filter((line) => [...line].length > 120)).toEqual([]);
});

/** Lines from one heading to the next. A screen has about as many. */
const SCREEN = 60;

test.each(PAGES)('every screen of %s has a heading', (name) => {
  // A line of code may begin with a #, so code counts as lines only.
  const text = page(name).replace(/^```[\s\S]*?^```$/gm, (code) => code.replace(/^#/gm, ' '));
  const sections = text.split(/^(?=#+ )/m).map((section) => section.split('\n'));
  const long = sections.filter((lines) => lines.length - 1 > SCREEN).map(([heading]) => heading);
  expect(long).toEqual([]);
});
