// docs/contract.md: every reference to the contract in code, tests and pages leads to a section of the page.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { page, root } from './markdown.ts';

/** The headings of each numbered section. */
const sections = new Map<string, Set<string>>();
let current = new Set<string>();
for (const [, level, number, heading = ''] of page('docs/contract.md').matchAll(/^(##|###) (?:(\d+)\. )?(.+)$/gm)) {
  if (level === '##') {
    current = new Set();
    if (number !== undefined) sections.set(number, current);
  } else {
    const whole = heading.replaceAll('`', '');
    // A reference may leave out the request after the name: `List: GET /runs` is also `List`.
    current.add(whole).add(whole.split(': ')[0] as string);
  }
}

interface Reference {
  readonly place: string;
  readonly numbers: readonly string[];
  /** The heading that the reference names. */
  readonly heading: string | undefined;
}

/** `Contract 5`, `contract 1 to 3`, `Contract 2 and 5`, `Contract 1, "Idempotency"`. */
const REFERENCE = /\b[Cc]ontract (\d+)((?:, \d+\b| and \d+\b| to \d+\b)*)(?:, "([^"]+)")?/g;

const references = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => /\.(ts|mjs|py|lua|md|conf|yml)$/.test(file) && existsSync(join(root, file)))
  .flatMap((file): Reference[] =>
    [...readFileSync(join(root, file), 'utf8').matchAll(REFERENCE)].map(([text, first = '', more = '', heading]) => ({
      place: `${file}: ${text}`,
      numbers: [first, ...(more.match(/\d+/g) ?? [])],
      heading: heading?.replaceAll('`', ''),
    })),
  );

test('code and pages refer to the contract, and the contract has nine sections', () => {
  expect(references.length).toBeGreaterThan(100);
  expect([...sections.keys()]).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9']);
});

test('every reference to the contract names a section that exists', () => {
  expect(references.filter(({ numbers }) => numbers.some((number) => !sections.has(number)))).toEqual([]);
});

test('every heading that a reference names stands in its section', () => {
  const wrong = references.filter(
    ({ numbers: [number = ''], heading }) => heading !== undefined && !sections.get(number)?.has(heading),
  );
  expect(wrong.map(({ place }) => place)).toEqual([]);
});
