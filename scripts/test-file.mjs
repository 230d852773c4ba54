// `npm run test:file -- <path>...`: installs, builds, then runs the named test files.
import { main, Refused, run } from './prepare.mjs';

await main(() => {
  const paths = process.argv.slice(2);
  if (paths.length === 0) throw new Refused('Name a test file: npm run test:file -- test/contract/calls.test.ts');
  return run(process.execPath, ['scripts/test.mjs', ...paths]);
});
