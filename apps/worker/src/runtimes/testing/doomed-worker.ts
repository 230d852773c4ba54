// A worker that a test kills. Starts a test app that starts a child. With the app `python`, a function also loops in C and holds the
// interpreter's lock. Prints both process ids.
import { join } from 'node:path';
import { FreedSlots } from '../freed-slots.ts';
import { pythonRuntimes } from '../python.ts';
import { Call, reached } from './calls.ts';

const [folder = 'python', leaves = 'leaves_a_child'] = process.argv.slice(2);
const silent = (): void => {};
const runtime = pythonRuntimes({
  slots: new FreedSlots(),
  countsOf: () => ({ moved: () => {}, started: () => {}, crashed: () => {} }),
  maxLogBytes: 10_000,
  maxItemBytes: 1000,
  logger: { info: silent, warn: silent, error: silent },
  environment: process.env,
})({ project: 'demo', app: 'test', folder: join(import.meta.dirname, folder) }, 'v1', {
  entrypoint: 'main.py',
  interpreter: undefined,
  replicas: 1,
  replicaConcurrency: 100,
  startupTimeoutMs: 600_000,
  timeoutMs: 600_000,
  cancelGraceMs: 1_000,
  memoryBytes: undefined,
  maxOutputBytes: 1000,
  debug: false,
  env: {},
});
runtime.start();
await reached(runtime, 'ready');
const pids = [await new Call(runtime, 'pid').result(), await new Call(runtime, leaves).result()];
if (folder === 'python') new Call(runtime, 'holds_the_lock');
process.stdout.write(`${pids.join(' ')}\n`);
