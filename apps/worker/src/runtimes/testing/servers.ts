// Starts the test servers as runtimes, and makes requests to them as calls.
import { join } from 'node:path';
import { encodeRequest, type ForwardedRequest, type HeaderPair } from '@inference-proxy/contracts';
import type { CustomServer } from '../../deployments/custom-server.ts';
import { FreedSlots } from '../freed-slots.ts';
import { httpServers } from '../http-server/http-servers.ts';
import type { WatchTimes } from '../http-server/server-watch.ts';
import type { ProcessCounts } from '../pool.ts';
import type { Runtime } from '../runtime.ts';
import { Call } from './calls.ts';

/** Short intervals, so that tests wait less. */
export const OFTEN: WatchTimes = { readyEveryMs: 50, wellEveryMs: 100, answerMs: 5_000 };

/** Records the lines that servers printed outside of runs, and the metrics of their processes. */
export class RecordedLog {
  readonly lines: string[] = [];
  readonly counted: string[] = [];
  #waiting: (() => void)[] = [];

  readonly note = (_fields: object, text: string): void => {
    this.lines.push(text);
    for (const wake of this.#waiting.splice(0)) wake();
  };

  readonly counts: ProcessCounts = {
    moved: () => {},
    started: (result) => this.counted.push(`start ${result}`),
    crashed: (how) => this.counted.push(`crash ${how}`),
  };

  /** Resolves when a line has been logged `times` times. */
  async logged(text: string, times = 1): Promise<void> {
    while (this.lines.filter((line) => line.includes(text)).length < times)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

export interface ServerUnderTest extends Partial<CustomServer> {
  readonly app?: string;
  readonly folder?: string;
  readonly replicas?: number;
  readonly concurrency?: number;
  readonly timeoutMs?: number;
  readonly startupTimeoutMs?: number;
  readonly memoryBytes?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly watch?: WatchTimes;
}

/** Returns the server runtimes of one worker. */
export const serversOf = (log: RecordedLog, watch = OFTEN): ReturnType<typeof httpServers> =>
  httpServers({
    maxItemBytes: 100_000,
    logger: { info: log.note, warn: log.note, error: log.note },
    slots: new FreedSlots(),
    countsOf: () => log.counts,
    environment: { ...process.env, REDIS_URL: 'redis://secret' },
    watch,
  });

/** @param worker by default a separate worker for the server */
export function serverRuntime(log: RecordedLog, more: ServerUnderTest, worker = serversOf(log, more.watch)): Runtime {
  const { app = 'test', folder = 'node', replicas = 1, memoryBytes, concurrency = 100, env = {}, ...rest } = more;
  const { timeoutMs = 60_000, startupTimeoutMs = 60_000, watch: _watch, ...server } = rest;
  return worker({ project: 'demo', app, folder: join(import.meta.dirname, 'servers', folder) }, 'v1', {
    server: {
      entrypoint: server.url === undefined ? ['node', 'server.mjs'] : undefined,
      url: undefined,
      port: undefined,
      healthcheck: '',
      readycheck: '',
      forwardAuth: false,
      killOnCancel: false,
      ...server,
    },
    replicas,
    replicaConcurrency: concurrency,
    startupTimeoutMs,
    timeoutMs,
    maxOutputBytes: 200_000,
    memoryBytes,
    env,
  });
}

/** Sends a request as a call. The method is `GET` unless `more` sets it. */
export function request(
  runtime: Runtime,
  target: string,
  more: Partial<Omit<ForwardedRequest, 'target'>> & { paced?: boolean; traceparent?: string } = {},
): Call {
  const { method = 'GET', headers = [], body = Buffer.alloc(0), paced = false, traceparent } = more;
  return new Call(runtime, target, encodeRequest({ method, target, headers, body }), paced, traceparent);
}

const JSON_BODY: HeaderPair = ['content-type', 'application/json'];

/** Calls a function of the conformance suite by a request. */
export function deed(runtime: Runtime, name: string, params: object | string = {}, paced = false): Call {
  const body = Buffer.from(typeof params === 'string' ? params : JSON.stringify(params));
  return request(runtime, `/${name}`, { method: 'POST', headers: [JSON_BODY], body, paced });
}
