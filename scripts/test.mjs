// `npm test`: sets everything up and runs every test; arguments go to jest (`npm test -- test/stack`).
import { mkdirSync, rmSync } from 'node:fs';
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
const { obtainFastApi } = await import('./test/dist/stack/fastapi.js');
await obtainRedis(console.log).catch((error) => { console.error(error.message); process.exitCode = 1; });
// Without it some tests fail, and say so; without Redis there are none.
await obtainFastApi(console.log).catch((error) => console.error(error.message));`;

/** The option replaces what jest.config.mjs says. */
const NO_COMPOSE = ['/node_modules/', '/dist/', '/test/compose/'].map((path) => `--testPathIgnorePatterns=${path}`);

/** What a run of all tests came to, for whoever wants to count: `rest.json` and `compose.json`, as jest writes them. */
const results = join(root, '.data', 'test-results');
const counted = (name) => ['--json', `--outputFile=${join(results, `${name}.json`)}`];

/** Tests are many processes and real servers: two files at a time are what two cores bear. */
const jest = (args) =>
  run(node, [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--maxWorkers=2', ...args], { env });

await main(async () => {
  checkMachine();
  await install();
  await build();
  if ((await run(node, ['--input-type=module', '-e', OBTAIN], { env })) !== 0) return 1;
  say('Running the tests');
  const args = process.argv.slice(2);
  if (args.length > 0) return jest(args);
  rmSync(results, { recursive: true, force: true });
  mkdirSync(results, { recursive: true });
  // Containers want the machine for themselves: what else is measured in seconds would fail beside them.
  const rest = await jest([...NO_COMPOSE, ...counted('rest')]);
  return (await jest(['test/compose', ...counted('compose')])) || rest;
});
