// `npm test`: installs, builds and runs every test. Arguments go to jest (`npm test -- test/stack`).
// `npm run test:quick` (--quick) leaves out the tests of test/slow-tests.mjs.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SLOW_TESTS } from '../test/slow-tests.mjs';
import { build, checkMachine, install, main, node, root, run, say, serviceEnvironment } from './prepare.mjs';

const env = {
  ...serviceEnvironment(),
  // Tests run from TypeScript sources. Their child processes find Node 24 first.
  PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`,
  NODE_OPTIONS:
    `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --disable-warning=ExperimentalWarning`.trim(),
};

/** Fetches Redis and FastAPI once, before test files would do so concurrently. */
const OBTAIN = `const { obtainRedis } = await import('./packages/supervisor/dist/redis/binary.js');
const { obtainFastApi } = await import('./test/dist/stack/fastapi.js');
await obtainRedis(console.log).catch((error) => { console.error(error.message); process.exitCode = 1; });
// Without FastAPI some tests fail with a message. Without Redis no test can run.
await obtainFastApi(console.log).catch((error) => console.error(error.message));`;

/** Leaves out tests. The option replaces the setting in jest.config.mjs. */
const without = (...paths) =>
  ['/node_modules/', '/dist/', ...paths.map((path) => `<rootDir>/${path}`)].map(
    (path) => `--testPathIgnorePatterns=${path}`,
  );

/** The results of a run of all tests as jest writes them: `rest.json` and `compose.json`. */
const results = join(root, '.data', 'test-results');
const counted = (name) => ['--json', `--outputFile=${join(results, `${name}.json`)}`];

/** Each test file starts many processes and real servers, so two cores bear only two files at a time. */
const jest = (args) =>
  run(node, [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--maxWorkers=2', ...args], { env });

await main(async () => {
  checkMachine();
  await install();
  await build();
  if ((await run(node, ['--input-type=module', '-e', OBTAIN], { env })) !== 0) return 1;
  say('Running the tests');
  const args = process.argv.slice(2);
  if (args[0] === '--quick') return jest([...without(...SLOW_TESTS), ...args.slice(1)]);
  if (args.length > 0) return jest(args);
  rmSync(results, { recursive: true, force: true });
  mkdirSync(results, { recursive: true });
  // Containers need the whole machine. Tests with times of seconds would fail beside them.
  const rest = await jest([...without('test/compose/'), ...counted('rest')]);
  return (await jest(['test/compose', ...counted('compose')])) || rest;
});
