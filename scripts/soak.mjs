// `npm run soak`: the long form of the fault suite (test/faults/soak.ts says what may be set); arguments are names of faults.
import { join } from 'node:path';
import { build, checkMachine, install, main, node, root, run } from './prepare.mjs';

await main(async () => {
  checkMachine();
  await install();
  await build();
  // A Ctrl-C reaches the soak by itself: it says what it found so far.
  process.on('SIGINT', () => {});
  const program = join(root, 'test', 'dist', 'faults', 'soak.js');
  return run(node, ['--enable-source-maps', program, ...process.argv.slice(2)]);
});
