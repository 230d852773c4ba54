// docs/deploy.md shows the table of the states of a version.
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { versionSteps } from './version-steps.ts';

const PAGE = readFileSync(new URL('../../../../docs/deploy.md', import.meta.url), 'utf8');

test('the table of steps in docs/deploy.md equals the table of the store', () => {
  const rows = [...PAGE.matchAll(/^\|(?: (`\w+`))? \|(?: (`\w+`))? \| ([^|]+) \| ((?:`[\w-]+`(?:, )?)+) \|$/gm)];
  const placeOf = (cell = ''): string => cell.replaceAll('`', '') || 'none';
  const listed = rows.map(([, from, to, when = '', scripts = '']) => ({
    from: placeOf(from),
    to: placeOf(to),
    scripts: scripts.replaceAll('`', '').split(', '),
    when: when.trim(),
  }));
  expect(listed).toEqual(versionSteps);
});
