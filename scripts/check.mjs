// `npm run --silent check -- <folder>`: prints the faults of an app's folder, and its functions, before a deployment.
import { join } from 'node:path';
import { build, checkMachine, install, main, node, root, run } from './prepare.mjs';

await main(async () => {
  checkMachine();
  await install();
  await build();
  return run(node, [join(root, 'apps', 'worker', 'dist', 'bundle', 'check.js'), ...process.argv.slice(2)]);
});
