// Contract 1 and harness/PROTOCOL.md: apps in JavaScript, on real processes.
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { conformance } from './conformance.ts';
import { FreedSlots } from './freed-slots.ts';
import { nodeRuntimes } from './node.ts';
import { Call } from './testing/calls.ts';

/** Longer than a test may take, so no run reaches this limit. */
const NEVER_MS = 600_000;
const silent = (): void => {};

conformance('Node', {
  make: (concurrency, limits = {}) =>
    nodeRuntimes({
      maxItemBytes: 100_000,
      maxLogBytes: 256 * 1024,
      logger: { info: silent, warn: silent, error: silent },
      slots: new FreedSlots(),
      countsOf: () => ({ moved: silent, started: silent, crashed: silent }),
      environment: process.env,
    })({ project: 'demo', app: 'test', folder: join(import.meta.dirname, 'testing/node') }, 'v1', {
      entrypoint: 'main.ts',
      interpreter: undefined,
      replicas: 1,
      replicaConcurrency: concurrency,
      startupTimeoutMs: NEVER_MS,
      timeoutMs: limits.timeoutMs ?? NEVER_MS,
      cancelGraceMs: limits.cancelGraceMs ?? NEVER_MS,
      memoryBytes: undefined,
      maxOutputBytes: 200_000,
      debug: false,
      env: {},
    }),
  call: (runtime, deed, params, paced) => new Call(runtime, deed, params, paced),
  broken: 'function_error',
  // JavaScript has one kind of number. Integers past 2^53 become BigInt.
  echoed: (text) => text.replace('1.0', '1'),
  cleanedUp: async (run) => expect(run.printed).toContain('cleaned up'),
});
