// Contract 5: an attempt of a run, with an app and a store that the test controls.
import { OperationsPort } from '@inference-proxy/platform';
import type { TakenRun } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import type { AppVersions } from '../deployments/versions.ts';
import { RunMetrics } from '../operations/run-metrics.ts';
import type { RunListener, RunRequest } from '../runtimes/runtime.ts';
import { released } from '../runtimes/testing/released.ts';
import { Execution } from './execute-run.ts';
import { RunLogs } from './run-log.ts';

const log = { info() {}, warn() {}, error() {} };

test('the parameters of a run leave the memory when the run begins', async () => {
  let listener: RunListener | undefined;
  const app = {
    run: (_request: RunRequest, told: RunListener) => {
      listener = told;
      return {
        running: { cancel() {}, credit() {}, pause() {}, resume() {} },
        version: 'v1',
        limits: { maxOutputBytes: 1, retryOnCrash: false },
      };
    },
  } as unknown as AppVersions;
  const answer = async (): Promise<never> => ({ state: 'ended' }) as never;
  const store = { append: answer, head: answer, end: answer };
  const taken = (): TakenRun => ({
    project: 'demo',
    app: 'hello',
    fn: 'run',
    runId: '0199f0a0-0000-7000-8000-000000000001',
    token: 'w:1',
    attempt: 1,
    paced: false,
    promised: false,
    params: Buffer.alloc(100_000),
  });
  let params: WeakRef<object> | undefined;
  const begun = (): Execution => {
    const run = taken();
    params = new WeakRef(run.params.buffer);
    return new Execution(
      run,
      app,
      store,
      log,
      { metrics: new RunMetrics(new OperationsPort().registry), tracing: undefined, log },
      new RunLogs({ store: { log: async () => undefined as never }, maxBytes: 1_000, logger: log }),
    );
  };
  const execution = begun();
  const ended = execution.execute();
  expect(await released(params as unknown as WeakRef<object>)).toBe(true);
  listener?.ended({ state: 'succeeded', items: 0, streamed: false, runTimeMs: 1, result: Buffer.from('1') });
  expect(await ended).toBe('ended');
});
