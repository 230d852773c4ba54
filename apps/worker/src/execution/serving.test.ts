import { OperationsPort } from '@inference-proxy/platform';
import { defaultTimings, type TakenRun, type WorkerStore } from '@inference-proxy/store';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { AppVersions } from '../deployments/versions.ts';
import { RunMetrics } from '../operations/run-metrics.ts';
import { RunLogs } from './run-log.ts';
import { Serving } from './serving.ts';

const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Serves `demo/chat` on a store that notes what it is asked; its queues are empty. */
function servingOn() {
  const renewals: (readonly string[])[] = [];
  const store: ConstructorParameters<typeof Serving>[0] = {
    timings: defaultTimings,
    onWake: () => undefined,
    onCancel: () => undefined,
    onTaken: () => undefined,
    serve: async () => undefined,
    leave: async () => undefined,
    take: async () => ({ runs: [] as TakenRun[], more: false }),
    append: async () => ({ state: 'lost' }) as never,
    head: async () => 'lost',
    end: async () => 'lost' as never,
    renew: async (...[, , apps]: Parameters<WorkerStore['renew']>) => {
      renewals.push(apps);
      return [];
    },
  };
  const app = new AppVersions(
    { project: 'demo', app: 'chat', folder: '/none' },
    () => {
      throw new Error('no version is offered here');
    },
    { changed: () => undefined, freed: () => undefined },
    logger,
  );
  const apps = { projects: () => ['demo'], appsOf: () => [app], find: () => app };
  const logs = new RunLogs({ store: { log: async () => 'ok' as const }, maxBytes: 1_000, logger });
  const accounts = { metrics: new RunMetrics(new OperationsPort().registry), tracing: undefined, log: logger };
  return { serving: new Serving(store, apps, logger, accounts, logs), app, renewals };
}

test('a worker that takes no more runs does not count as serving its apps, for all that its last runs may take', async () => {
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

test('an app that does not start is served by nobody, so that what is queued for it fails with the reason', async () => {
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
