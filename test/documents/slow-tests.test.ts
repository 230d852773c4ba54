// test/slow-tests.mjs: an entry that matches no test would silently add a slow test to `npm run test:quick`, or start a long test late.
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from './markdown.ts';

const { SLOW_TESTS, LONGEST_TESTS } = (await import(join(root, 'test', 'slow-tests.mjs'))) as {
  SLOW_TESTS: readonly string[];
  LONGEST_TESTS: readonly string[];
};

test.each([...new Set([...SLOW_TESTS, ...LONGEST_TESTS])])('%s has tests', (entry) => {
  const pattern = entry.endsWith('/') ? `${entry}**/*.test.ts` : entry;
  expect(globSync(pattern, { cwd: root })).not.toEqual([]);
});
