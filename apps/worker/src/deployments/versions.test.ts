// Contract 7: a new version replaces the serving version, with scripted runtimes.
import { type ErrorFields, type FunctionSpec, ServiceError } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import type { RunEnd, RunListener, RunningRun, RunRequest, Runtime, RuntimeState } from '../runtimes/runtime.ts';
import { parseManifest } from './manifest.ts';
import { AppVersions } from './versions.ts';

const { manifest } = parseManifest('[scaling]\ntimeout = 2\nqueue_limit = 7', 100);

/** A runtime whose start ends when the test ends it, with the result that the test chooses. */
class ScriptedRuntime implements Runtime {
  state: RuntimeState = 'starting';
  functions: readonly FunctionSpec[] = [];
  error: ErrorFields | undefined;
  freeSlots = 0;
  leaves = false;
  #changed = (): void => undefined;
  readonly #ending = Promise.withResolvers<void>();

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  readonly replicas = { ready: 0, desired: 1 };

  onReplicas(): void {}

  onStartLines(): void {}

  start(): void {}

  becomeReady(): void {
    this.state = 'ready';
    this.functions = [{ name: 'run', parameters: [], extra: false }];
    this.freeSlots = 2;
    this.#changed();
  }

  fail(): void {
    this.state = 'broken';
    this.error = { code: 'app_failed_to_start', message: 'no module named x' };
    this.#changed();
  }

  run(_request: RunRequest, _listener: RunListener): RunningRun {
    return { cancel: () => undefined, credit: () => undefined, pause: () => undefined, resume: () => undefined };
  }

  drain(): Promise<void> {
    this.leaves = true;
    return this.#ending.promise;
  }

  async close(): Promise<void> {
    this.#ending.resolve();
  }
}

function appOf(folder = '/apps/chat') {
  const runtimes = new Map<string, ScriptedRuntime>();
  const descriptions: string[] = [];
  const app: AppVersions = new AppVersions(
    { project: 'demo', app: 'chat', folder },
    (_place, version) => {
      const runtime = new ScriptedRuntime();
      runtimes.set(version, runtime);
      return runtime;
    },
    () => {
      const { state, version } = app.describe();
      descriptions.push(`${version} ${state}`);
    },
    { info: () => undefined, error: () => undefined },
  );
  return { app, descriptions, runtime: (version: string) => runtimes.get(version) as ScriptedRuntime, runtimes };
}

const listener = {
  head: () => undefined,
  items: () => undefined,
  log: () => undefined,
  ended: () => undefined,
};
const request = { runId: 'r', fn: 'run', params: Buffer.from('{}'), paced: false };

test('the first version serves when it is ready', async () => {
  const { app, descriptions, runtime } = appOf();
  app.offer({ version: '1', manifest });
  expect(app.freeSlots).toBe(0);
  runtime('1').becomeReady();
  await app.firstStart;
  expect(descriptions).toEqual(['1 starting', '1 ready']);
  expect(app.freeSlots).toBe(2);
  expect(app.describe()).toMatchObject({
    app: 'chat',
    functions: [{ name: 'run' }],
    queueLimit: 7,
    preformatted: true,
  });
});

test('a new version starts beside the old version and replaces it when ready; the old version ends its runs', () => {
  const { app, descriptions, runtime } = appOf();
  app.offer({ version: '1', manifest });
  runtime('1').becomeReady();
  app.offer({ version: '2', manifest });
  expect(app.run(request, listener).version).toBe('1');
  expect(runtime('1').leaves).toBe(false);
  runtime('2').becomeReady();
  expect(app.run(request, listener).version).toBe('2');
  expect(runtime('1').leaves).toBe(true);
  expect(descriptions).toEqual(['1 starting', '1 ready', '2 ready']);
});

test('a new version that does not start leaves the old version serving', () => {
  const { app, runtime } = appOf();
  app.offer({ version: '1', manifest });
  runtime('1').becomeReady();
  app.offer({ version: '2', manifest });
  runtime('2').fail();
  expect(app.describe()).toMatchObject({ version: '1', state: 'ready' });
  expect(runtime('2').leaves).toBe(true);
  app.offer({ version: '1', manifest });
  expect(app.describe()).toMatchObject({ version: '1', state: 'ready' });
});

test('a version that did not start is reported beside the version that serves, until the code changes', () => {
  const { app, descriptions, runtime } = appOf();
  app.offer({ version: '1', manifest });
  runtime('1').becomeReady();
  app.offer({ version: '2', manifest });
  expect(app.describe().failed).toBeUndefined();
  descriptions.length = 0;
  runtime('2').fail();
  expect(descriptions).toEqual(['1 ready']);
  const error = { code: 'app_failed_to_start', message: 'no module named x' };
  expect(app.describe()).toMatchObject({ version: '1', state: 'ready', failed: { version: '2', error } });
  const notToml = { code: 'app_failed_to_start', message: 'not TOML' } as const;
  app.offer({ version: '3', manifest: undefined, error: notToml });
  expect(app.describe()).toMatchObject({ version: '1', failed: { version: '3', error: notToml } });
  app.offer({ version: '1', manifest });
  expect(app.describe().failed).toBeUndefined();
  app.offer({ version: '4', manifest });
  runtime('4').becomeReady();
  expect(app.describe()).toMatchObject({ version: '4', state: 'ready' });
  expect(app.describe().failed).toBeUndefined();
});

test('a manifest that cannot be used leaves the old version serving', () => {
  const { app, runtime } = appOf();
  app.offer({ version: '1', manifest });
  runtime('1').becomeReady();
  app.offer({ version: '2', manifest: undefined, error: { code: 'app_failed_to_start', message: 'not TOML' } });
  expect(app.describe()).toMatchObject({ version: '1', state: 'ready' });
});

test('a first version that does not start is described as broken with the reason, until a new version comes', async () => {
  const { app, descriptions, runtime } = appOf();
  app.offer({ version: '1', manifest });
  runtime('1').fail();
  await app.firstStart;
  expect(app.describe()).toMatchObject({
    state: 'broken',
    error: { code: 'app_failed_to_start', message: 'no module named x' },
  });
  app.offer({ version: '2', manifest });
  runtime('2').becomeReady();
  expect(descriptions).toEqual(['1 starting', '1 broken', '2 starting', '2 ready']);
});

test('an app whose first manifest cannot be used is broken, and runs nothing', async () => {
  const { app, runtimes } = appOf();
  app.offer({ version: '1', manifest: undefined, error: { code: 'app_failed_to_start', message: 'not TOML' } });
  await app.firstStart;
  expect(app.describe()).toMatchObject({ state: 'broken', error: { message: 'not TOML' } });
  expect(runtimes.size).toBe(0);
  expect(() => app.run(request, listener)).toThrow(ServiceError);
});

test('of two new versions in a row, only the last version takes over', () => {
  const { app, runtime } = appOf();
  app.offer({ version: '1', manifest });
  runtime('1').becomeReady();
  app.offer({ version: '2', manifest });
  app.offer({ version: '3', manifest });
  expect(runtime('2').leaves).toBe(true);
  runtime('2').becomeReady();
  expect(app.describe().version).toBe('1');
  runtime('3').becomeReady();
  expect(app.describe().version).toBe('3');
});

test('draining ends every version, including replaced versions', async () => {
  const { app, runtime } = appOf();
  app.offer({ version: '1', manifest });
  runtime('1').becomeReady();
  app.offer({ version: '2', manifest });
  runtime('2').becomeReady();
  app.offer({ version: '3', manifest });
  await app.drain(AbortSignal.abort());
  expect([runtime('2').leaves, runtime('3').leaves]).toEqual([true, true]);
});

test('if a server has a fixed port, the new version starts after the old version has left the port', async () => {
  const { app, descriptions, runtimes } = appOf();
  const started: string[] = [];
  const versionOf = (version: string, port: number) => {
    const { manifest } = parseManifest(`[runtime.custom]\nport = ${port}\nentrypoint = "serve"`, 100);
    app.offer({ version, manifest });
    const runtime = runtimes.get(version) as ScriptedRuntime;
    runtime.start = () => started.push(version);
    return runtime;
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const one = versionOf('1', 8000);
  one.becomeReady();
  const two = versionOf('2', 8000);
  expect(one.leaves).toBe(true);
  await turn();
  expect(started).toEqual([]);
  expect(app.freeSlots).toBe(0);
  // A third version arrives before the second version has started.
  const three = versionOf('3', 8000);
  await two.close();
  await turn();
  expect(started).toEqual([]);
  await one.close();
  await turn();
  expect(started).toEqual(['3']);
  three.becomeReady();
  expect(descriptions).toEqual(['1 starting', '1 ready', '2 starting', '3 starting', '3 ready']);
  // A version on another port starts at once.
  const four = versionOf('4', 9000);
  expect(three.leaves).toBe(false);
  four.becomeReady();
  expect(three.leaves).toBe(true);
  expect(app.describe()).toMatchObject({ version: '4', kind: 'server', preformatted: true });
});

/** Makes a deployed version ready beside the serving version. */
function prepared({ app, runtime }: ReturnType<typeof appOf>, version: string): void {
  app.prepare({ version, manifest, folder: `/cache/${version}` }, () => undefined);
  runtime(version).becomeReady();
}

test('a deployed version takes the runs of its own queue until the queue is empty, also after its time as active version', async () => {
  const deployed = appOf('');
  const { app, runtime } = deployed;
  prepared(deployed, 'a');
  app.activate('a');
  prepared(deployed, 'b');
  expect(app.openQueues.map(({ queue }) => queue)).toEqual(['chat@a', 'chat@b']);
  app.activate('b');
  expect(app.version).toBe('b');
  expect(app.versionQueues).toEqual(['chat@b', 'chat@a']);
  expect(app.run(request, listener, 'a').version).toBe('a');
  expect(app.run(request, listener).version).toBe('b');
  const [, old] = app.openQueues;
  old?.emptied?.();
  expect(runtime('a').leaves).toBe(true);
  expect(app.versionQueues).toEqual(['chat@b']);
  // The active version executes a run of a version that this worker no longer has.
  expect(app.run(request, listener, 'a').version).toBe('b');
});

test('a rollback takes a version back whose queue is not empty yet', () => {
  const deployed = appOf('');
  const { app, runtimes } = deployed;
  for (const version of ['a', 'b']) {
    prepared(deployed, version);
    app.activate(version);
  }
  const decided: unknown[] = [];
  app.prepare({ version: 'a', manifest, folder: '/cache/a' }, (error) => decided.push(error));
  expect(decided).toEqual([undefined]);
  expect(app.activate('a')).toBe(true);
  expect(app.version).toBe('a');
  expect(app.versionQueues).toEqual(['chat@a', 'chat@b']);
  expect(runtimes.size).toBe(2);
});

test('an old version that breaks leaves, so that the store moves its runs', () => {
  const deployed = appOf('');
  const { app, runtime } = deployed;
  for (const version of ['a', 'b']) {
    prepared(deployed, version);
    app.activate(version);
  }
  runtime('a').fail();
  expect(runtime('a').leaves).toBe(true);
  expect(app.versionQueues).toEqual(['chat@b']);
});

test('the calls of a prepared version are counted, with the calls for whose failure the version is to blame', () => {
  const deployed = appOf('');
  const { app } = deployed;
  prepared(deployed, 'a');
  app.activate('a');
  expect(app.preparedCalls).toBeUndefined();
  prepared(deployed, 'b');
  const runtime = deployed.runtime('b');
  const ended: RunEnd[] = [];
  const ends: Partial<RunEnd>[] = [
    { state: 'succeeded' },
    { state: 'succeeded', statusCode: 503 },
    { state: 'failed', error: { code: 'function_error', message: 'x' } },
    { state: 'failed', error: { code: 'invalid_input', message: 'x' } },
    { state: 'cancelled', error: { code: 'cancelled', message: 'x' } },
  ];
  for (const end of ends) {
    runtime.run = (_request, heard) => {
      heard.ended({ items: 0, streamed: false, runTimeMs: 1, state: 'succeeded', ...end });
      return { cancel: () => undefined, credit: () => undefined, pause: () => undefined, resume: () => undefined };
    };
    app.run(request, { ...listener, ended: (end) => void ended.push(end) }, 'b');
  }
  expect(app.preparedCalls).toEqual({ calls: 5, failed: 2 });
  expect(ended).toHaveLength(5);
  app.run(request, listener, 'a');
  expect(app.preparedCalls).toEqual({ calls: 5, failed: 2 });
});

test('a prepared version that breaks after it was ready is reported', () => {
  const deployed = appOf('');
  const { app } = deployed;
  prepared(deployed, 'a');
  app.activate('a');
  const decided: (ErrorFields | undefined)[] = [];
  app.prepare({ version: 'b', manifest, folder: '/cache/b' }, (error) => decided.push(error));
  deployed.runtime('b').becomeReady();
  deployed.runtime('b').fail();
  expect(decided.map((error) => error?.message)).toEqual([undefined, 'no module named x']);
});
