// Contract 8: the system refuses to start a process. The app is broken with the reason, and the worker and its other apps continue.
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, jest, test } from '@jest/globals';
import { FreedSlots } from './freed-slots.ts';
import { pythonRuntimes } from './python.ts';
import type { Runtime } from './runtime.ts';
import { Call, reached } from './testing/calls.ts';
import { DescriptorLimit } from './testing/descriptor-limit.ts';
import { RecordedLog, serverRuntime } from './testing/servers.ts';

jest.setTimeout(60_000);

/** Linux allows 128 KiB for one variable, its name included (execve(2), MAX_ARG_STRLEN). */
const TOO_LARGE = 'x'.repeat(128 * 1024);

const runtimes: Runtime[] = [];
afterEach(() => Promise.all(runtimes.splice(0).map((runtime) => runtime.close())));

function functions(env: Readonly<Record<string, string>> = {}): Runtime {
  const none = (): void => undefined;
  const make = pythonRuntimes({
    maxItemBytes: 100_000,
    maxLogBytes: 100_000,
    logger: { info: none, warn: none, error: none },
    slots: new FreedSlots(),
    countsOf: () => ({ moved: none, started: none, crashed: none }),
    environment: process.env,
  });
  const runtime = make({ project: 'demo', app: 'test', folder: join(import.meta.dirname, 'testing', 'python') }, 'v1', {
    entrypoint: 'main.py',
    interpreter: undefined,
    replicas: 1,
    replicaConcurrency: 1,
    startupTimeoutMs: 60_000,
    timeoutMs: 60_000,
    cancelGraceMs: 1_000,
    memoryBytes: undefined,
    maxOutputBytes: 100_000,
    debug: false,
    env,
  });
  runtimes.push(runtime);
  return runtime;
}

function server(env: Readonly<Record<string, string>> = {}): Runtime {
  const runtime = serverRuntime(new RecordedLog(), { env });
  runtimes.push(runtime);
  return runtime;
}

test.each([
  ['functions', functions],
  ['a web server', server],
])(
  'an [env] value over the system’s limit breaks %s with the variable’s name, and no other app',
  async (_kind, make) => {
    const healthy = functions();
    const broken = make({ SMALL: '1', MODEL_TEXT: TOO_LARGE });
    healthy.start();
    broken.start();
    await reached(broken, 'broken');
    expect(broken.error).toMatchObject({ code: 'app_failed_to_start' });
    expect(broken.error?.message).toContain('MODEL_TEXT');
    expect(broken.error?.message).not.toContain('xxx');
    await reached(healthy, 'ready');
    expect((await new Call(healthy, 'add', { a: 1, b: 2 }).ended).state).toBe('succeeded');
  },
);

test('an [env] value with a NUL breaks the app, and no other app', async () => {
  const broken = functions({ TEXT: 'a\0b' });
  broken.start();
  await reached(broken, 'broken');
  expect(broken.error?.message).toContain('cannot be started');
});

test('an [env] PATH over the system’s limit breaks the app', async () => {
  const broken = functions({ PATH: `${process.env.PATH}:${TOO_LARGE}` });
  broken.start();
  await reached(broken, 'broken');
  expect(broken.error?.message).toContain('PATH');
});

test.each([
  ['functions', functions],
  ['a web server', server],
])(
  '%s without a free file descriptor: the app is broken with the reason, and starts when a descriptor is free',
  async (_kind, make) => {
    const warm = make();
    warm.start();
    await reached(warm, 'ready'); // from now on, the interpreter is known
    const runtime = make();
    const limit = new DescriptorLimit();
    try {
      await limit.exhaust();
      runtime.start();
      while (runtime.state === 'starting') await pause(5);
    } finally {
      await limit.release();
    }
    expect(runtime.error?.message).toContain('too many open files');
    await reached(runtime, 'ready');
  },
);
