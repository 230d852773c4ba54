// A worker that a test kills: starts the test app, lets it start a child of its own and loop in C with the interpreter's lock held, tells both process ids.
import { join } from 'node:path';
import { pythonRuntimes } from '../python.ts';
import { Call, reached } from './calls.ts';

const silent = (): void => {};
const runtime = pythonRuntimes({
  countsOf: () => ({ moved: () => {}, started: () => {}, crashed: () => {} }),
  maxLogBytes: 10_000,
  maxItemBytes: 1000,
  logger: { info: silent, warn: silent, error: silent },
  environment: process.env,
})({ project: 'demo', app: 'test', folder: join(import.meta.dirname, 'python') }, 'v1', {
  entrypoint: 'main.py',
  interpreter: undefined,
  replicas: 1,
  replicaConcurrency: 100,
  startupTimeoutMs: 20_000,
  timeoutMs: 60_000,
  cancelGraceMs: 1_000,
  maxOutputBytes: 1000,
  debug: false,
  env: {},
});
runtime.start();
await reached(runtime, 'ready');
const pids = [await new Call(runtime, 'pid').result(), await new Call(runtime, 'leaves_a_child').result()];
new Call(runtime, 'holds_the_lock');
process.stdout.write(`${pids.join(' ')}\n`);
