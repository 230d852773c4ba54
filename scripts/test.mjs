// `npm test`: sets everything up and runs every test; arguments go to jest (`npm test -- test/stack`).
import { join } from 'node:path';
import { build, checkMachine, install, main, node, root, run, say } from './prepare.mjs';

const env = {
  ...process.env,
  // Tests run from TypeScript sources, and what they start finds Node 24 first.
  PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`,
  NODE_OPTIONS:
    `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --disable-warning=ExperimentalWarning`.trim(),
};

/** Once, before the test files ask for it side by side. */
const OBTAIN = `const { obtainRedis } = await import('./test/dist/stack/redis.js');
await obtainRedis(console.log).catch((error) => { console.error(error.message); process.exitCode = 1; });`;

await main(async () => {
  checkMachine();
  await install();
  await build();
  if ((await run(node, ['--input-type=module', '-e', OBTAIN], { env })) !== 0) return 1;
  say('Running the tests');
  // Tests are many processes and real servers: two files at a time are what two cores bear.
  return run(node, [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--maxWorkers=2', ...process.argv.slice(2)], {
    env,
  });
});
