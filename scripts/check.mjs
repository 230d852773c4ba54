// `npm run --silent check -- <folder>`: prints the faults of an app's folder, and its functions, before a deployment. Installs and builds if needed.
// The command line has the same command.
import { build, checkMachine, cli, install, main } from './prepare.mjs';

await main(async () => {
  checkMachine();
  await install();
  await build();
  return cli('check', ...process.argv.slice(2));
});
