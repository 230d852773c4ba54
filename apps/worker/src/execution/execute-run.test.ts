// Contract 5: an attempt of a run, with an app and a store that the test controls.
import { OperationsPort } from '@inference-proxy/platform';
import type { End, TakenRun } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import type { AppVersions } from '../deployments/versions.ts';
import { RunMetrics } from '../operations/run-metrics.ts';
import type { RunEnd, RunListener, RunRequest } from '../runtimes/runtime.ts';
import { released } from '../runtimes/testing/released.ts';
import { Execution } from './execute-run.ts';
import { RunLogWriters } from './run-log-writer.ts';

const log = { info() {}, warn() {}, error() {} };

/** Returns an app on version `v1` that keeps the listener of its run. */
function appWithRun() {
  const started: { listener?: RunListener } = {};
  const app = {
    run: (_request: RunRequest, listener: RunListener) => {
      started.listener = listener;
      return {
        running: { cancel() {}, credit() {}, pause() {}, resume() {} },
        version: 'v1',
        limits: { maxOutputBytes: 1, retryOnCrash: false },
      };
    },
  } as unknown as AppVersions;
  return { app, started };
}

const taken = (version: string): TakenRun => ({
  project: 'demo',
  app: 'hello',
  queue: 'hello',
  fn: 'run',
  runId: '0199f0a0-0000-7000-8000-000000000001',
  token: 'w:1',
  attempt: 1,
  paced: false,
  promised: false,
  version,
  params: Buffer.alloc(100_000),
});

/** Returns an execution, and the ends that its store receives. */
function executionOf(run: TakenRun, app: AppVersions) {
  const ends: End[] = [];
  const answer = async (): Promise<never> => ({ state: 'ended' }) as never;
  const store = {
    append: answer,
    head: answer,
    end: (_project: string, end: End): Promise<never> => {
      ends.push(end);
      return answer();
    },
  };
  const accounts = { metrics: new RunMetrics(new OperationsPort().registry), tracing: undefined, log };
  const logs = new RunLogWriters({ store: { log: async () => undefined as never }, maxBytes: 1_000, logger: log });
  return { execution: new Execution(run, app, store, log, accounts, logs), ends };
}

const succeeded: RunEnd = {
  state: 'succeeded',
  items: 0,
  streamed: false,
  runTimeMs: 1,
  result: Buffer.from('1'),
};

test('the parameters of a run leave the memory when the run begins', async () => {
  const { app, started } = appWithRun();
  let params: WeakRef<object> | undefined;
  const begun = (): Execution => {
    const run = taken('v1');
    params = new WeakRef(run.params.buffer);
    return executionOf(run, app).execution;
  };
  const execution = begun();
  const ended = execution.execute();
  expect(await released(params as unknown as WeakRef<object>)).toBe(true);
  started.listener?.ended(succeeded);
  expect(await ended).toBe('ended');
});

test('the end of a run names its version if a new version replaced the version of the take', async () => {
  const namedIn = async (version: string): Promise<string | undefined> => {
    const { app, started } = appWithRun();
    const { execution, ends } = executionOf(taken(version), app);
    const ended = execution.execute();
    started.listener?.ended(succeeded);
    await ended;
    return ends[0]?.version;
  };
  expect(await namedIn('v0')).toBe('v1');
  expect(await namedIn('v1')).toBeUndefined();
});
