// Contract 5: serving a project, with a scripted store.
import { OperationsPort } from '@inference-proxy/platform';
import { defaultTimings, type TakenRun, type WorkerStore } from '@inference-proxy/store';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { parseManifest } from '../deployments/manifest.ts';
import { AppVersions } from '../deployments/versions.ts';
import { RunMetrics } from '../operations/run-metrics.ts';
import { FreedSlots } from '../runtimes/freed-slots.ts';
import type { Runtime } from '../runtimes/runtime.ts';
import { RunLogWriters } from './run-log-writer.ts';
import { Serving } from './serving.ts';

const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Every run yields an item, and ends when it is cancelled. */
const yieldsOnce: Runtime = {
  state: 'ready',
  functions: [],
  error: undefined,
  freeSlots: 1,
  replicas: { ready: 1, desired: 1 },
  onChange: () => undefined,
  onReplicas: () => undefined,
  onStartLines: () => undefined,
  start: () => undefined,
  run(_request, listener) {
    listener.items({ kind: 's', count: 1, blob: Buffer.from('item') });
    const ended = { state: 'cancelled', items: 1, streamed: true, runTimeMs: 1 } as const;
    return {
      cancel: () => listener.ended(ended),
      credit: () => undefined,
      pause: () => undefined,
      resume: () => undefined,
    };
  },
  drain: async () => undefined,
  close: async () => undefined,
};

/** Serves `demo/chat` with a store that records its calls and has empty queues. */
function servingOn(taken: readonly TakenRun[] = []) {
  const renewals: (readonly string[])[] = [];
  const released: string[] = [];
  const queued = [...taken];
  const store: ConstructorParameters<typeof Serving>[0] = {
    timings: defaultTimings,
    onWake: () => undefined,
    onCancel: () => undefined,
    onReaderPosition: () => undefined,
    serve: async () => undefined,
    leave: async () => undefined,
    take: async () => ({ runs: queued.splice(0), more: false }),
    append: async () => ({ state: 'lost' }) as never,
    release: ({ runId }) => void released.push(runId),
    head: async () => 'lost',
    end: async () => 'lost' as never,
    renew: async (...[, , apps]: Parameters<WorkerStore['renew']>) => {
      renewals.push(apps);
      return [];
    },
  };
  const app = new AppVersions(
    { project: 'demo', app: 'chat', folder: '/none' },
    () => yieldsOnce,
    () => undefined,
    logger,
  );
  const apps = { projects: () => ['demo'], appsOf: () => [app], find: () => app };
  const logs = new RunLogWriters({ store: { log: async () => 'ok' as const }, maxBytes: 1_000, logger });
  const accounts = { metrics: new RunMetrics(new OperationsPort().registry), tracing: undefined, log: logger };
  return { serving: new Serving(store, apps, new FreedSlots(), logger, accounts, logs), app, renewals, released };
}

test('a worker that takes no more runs does not count as serving its apps, even while its last runs continue', async () => {
  const { serving, renewals } = servingOn();
  serving.follow();
  await jest.advanceTimersByTimeAsync(0);
  expect(renewals).toEqual([['chat']]);
  await serving.stopIntake();
  await jest.advanceTimersByTimeAsync(defaultTimings.renewMs);
  expect(renewals).toEqual([['chat'], []]);
  await serving.drain(0, AbortSignal.timeout(1_000));
  expect(jest.getTimerCount()).toBe(0);
});

test('no worker serves an app that does not start, so that its queued runs fail with the reason', async () => {
  const { serving, app, renewals } = servingOn();
  serving.follow();
  await jest.advanceTimersByTimeAsync(0);
  const error = { code: 'app_failed_to_start', message: 'no module named x' } as const;
  app.offer({ version: '1', manifest: undefined, error });
  serving.follow();
  await jest.advanceTimersByTimeAsync(0);
  expect(renewals).toEqual([['chat'], []]);
  await serving.stopIntake();
  await serving.drain(0, AbortSignal.timeout(1_000));
});

test('a paced run whose attempt was lost during an append is released in the store', async () => {
  const run: TakenRun = {
    project: 'demo',
    runId: 'r1',
    token: 'w:1',
    app: 'chat',
    fn: 'run',
    attempt: 1,
    paced: true,
    params: Buffer.from('{}'),
  } as TakenRun;
  const { serving, app, released } = servingOn([run]);
  app.offer({ version: '1', manifest: parseManifest('', 1_000).manifest });
  serving.follow();
  serving.wake('demo');
  await jest.advanceTimersByTimeAsync(0);
  expect(released).toEqual(['r1']);
  expect(serving.runs).toBe(0);
  await serving.stopIntake();
  await serving.drain(0, AbortSignal.timeout(1_000));
});
