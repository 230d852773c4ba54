// `npm run soak`: the long form of the fault suite. Arguments are names of faults. test/faults/soak.ts lists the settings.
import { join } from 'node:path';
import { build, checkMachine, install, main, node, root, run } from './prepare.mjs';

await main(async () => {
  checkMachine();
  await install();
  await build();
  // Ctrl-C reaches the soak too, and the soak prints the results so far.
  process.on('SIGINT', () => {});
  const program = join(root, 'test', 'dist', 'faults', 'soak.js');
  return run(node, ['--enable-source-maps', program, ...process.argv.slice(2)]);
});
