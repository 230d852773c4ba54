// docs/security/functions.md, "What a function can do to others": starts a stack with hostile apps and calls other apps while a test runs.
import { join } from 'node:path';
import { projectRoot } from '@inference-proxy/supervisor';
import { expect } from '@jest/globals';
import { Caller } from '../../client/caller.ts';
import { until } from '../../client/until.ts';
import { startTestStack, type TestStack } from '../../stack/test-stack.ts';
import { openFiles, processesBelow } from './processes.ts';

const APPS = [
  'demo/hostile',
  'demo/alone',
  'demo/brief',
  'demo/small',
  'demo/server',
  'demo/beside',
  'other/secretive',
];

/** The fields of the envelope that these tests read. */
export interface Envelope {
  readonly run_id: string;
  readonly status: string;
  readonly result?: unknown;
  readonly error?: { readonly code: string; readonly message: string; readonly type?: string };
}

/** Returns an expectation of an answer's status and error. */
export const failed = (httpStatus: number, code: string, type?: string): object => ({
  httpStatus,
  error: { code, ...(type !== undefined && { type }) },
});

export interface HostileStack {
  readonly stack: TestStack;
  readonly caller: Caller;
  /** Whether the worker's log reports `contained`: functions cannot signal or inspect other processes. */
  readonly contained: boolean;
  /** @param query begins with `?` */
  called(fn: string, params?: object, query?: string): Promise<Envelope & { readonly httpStatus: number }>;
  /**
   * Does `work` while calls and streams of the app `beside` run; all of them must succeed. Then waits until the worker has the processes of its
   * apps only, and no more open files than before.
   */
  beside<T>(work: () => Promise<T>): Promise<T>;
}

/** Resolves when all apps are served. */
export async function appsReady({ port, jwtSecret }: TestStack): Promise<void> {
  for (const place of APPS) {
    const [project = '', app = ''] = place.split('/');
    await new Caller(port, jwtSecret, project).ready(app);
  }
}

export async function hostileStack(): Promise<HostileStack> {
  const stack = await startTestStack({
    apps: join(projectRoot(), 'test', 'hostile', 'functions', 'apps'),
    env: { WORKER_APPS: APPS.join(',') },
  });
  const caller = new Caller(stack.port, stack.jwtSecret);
  try {
    await appsReady(stack);
    // The worker writes its log in batches, so the line can be later than the answer of the gateway.
    await until(() => stack.logs().includes('"contained":'));
  } catch (error) {
    await stack.stop();
    throw error;
  }
  const called: HostileStack['called'] = async (fn, params = {}, query = '') => {
    const { status, text } = await caller.call(fn, params, { query });
    return { httpStatus: status, ...(JSON.parse(text) as Envelope) };
  };

  const callsGoOn = async (over: () => boolean): Promise<void> => {
    for (let n = 0; n === 0 || !over(); n++)
      expect(await called('beside/value', { n })).toMatchObject({ httpStatus: 200, result: n });
  };
  const streamsGoOn = async (over: () => boolean): Promise<void> => {
    do {
      const { events } = await caller.stream('beside/ticks', { n: 10 });
      expect(await events.rest()).toEqual(Array.from({ length: 10 }, (_, at) => `data: ${at}`));
    } while (!over());
  };
  return {
    stack,
    caller,
    contained: stack.logs().includes('"contained":true'),
    called,
    async beside(work) {
      const filesBefore = await openFiles(stack.pid('worker'));
      let over = false;
      const others = Promise.all([callsGoOn(() => over), streamsGoOn(() => over)]);
      const done = await work().finally(() => {
        over = true;
      });
      await others;
      // Each app has a keeper and a replica.
      await until(async () => (await processesBelow(stack.pid('worker'))).length === 2 * APPS.length);
      await until(async () => (await openFiles(stack.pid('worker'))) <= filesBefore);
      return done;
    },
  };
}
