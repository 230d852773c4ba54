// Contract 1: a client with a token for a project. It calls functions and looks runs up.
import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { signToken } from '@inference-proxy/supervisor';
import { EventReader } from './event-reader.ts';
import { type Answer, open, type RequestOptions, request } from './http.ts';
import { until } from './until.ts';

export interface CallOptions extends Omit<RequestOptions, 'body'> {
  /** The query, with its `?`. */
  readonly query?: string;
}

/** An open stream. */
export interface Streamed {
  readonly answer: IncomingMessage;
  readonly runId: string;
  readonly events: EventReader;
}

/** The fields of a look-up that tests read. The object has all fields. */
export interface LookedUp {
  readonly run_id: string;
  readonly status: string;
  readonly items: number;
  readonly result?: unknown;
  readonly error?: { readonly code: string };
  readonly webhook?: { readonly state: string; readonly attempts: number };
  readonly [field: string]: unknown;
}

export class Caller {
  /** The value of its header `authorization`. */
  readonly bearer: string;
  /** The path of its project. */
  readonly path: string;

  /** @param more further claims of its token */
  constructor(
    readonly port: number,
    jwtSecret: string,
    readonly project = 'demo',
    more: object = {},
  ) {
    this.path = `/v4/${project}`;
    this.bearer = `Bearer ${signToken(jwtSecret, { project, ttlS: 3600, more })}`;
  }

  /** Sends any request. The token is added unless `headers` has `authorization`. */
  request(path: string, options: RequestOptions = {}): Promise<Answer> {
    return request(this.port, path, this.#withToken(options));
  }

  open(path: string, options: RequestOptions = {}): Promise<IncomingMessage> {
    return open(this.port, path, this.#withToken(options));
  }

  /**
   * Calls `app/function` and waits for the whole answer.
   *
   * @param params an object, or the exact bytes of the body
   */
  call(fn: string, params: object | string = {}, options: CallOptions = {}): Promise<Answer> {
    return this.request(this.#url(fn, options), { ...options, body: bodyOf(params) });
  }

  /** Calls for a stream. Resolves when the head of the answer has arrived. */
  async stream(fn: string, params: object | string = {}, options: CallOptions = {}): Promise<Streamed> {
    const headers = { accept: 'text/event-stream', ...options.headers };
    const answer = await this.open(this.#url(fn, options), { ...options, headers, body: bodyOf(params) });
    const zipped = answer.headers['content-encoding'] === 'gzip';
    const events = new EventReader(zipped ? answer.pipe(createGunzip()) : answer);
    return { answer, events, runId: String(answer.headers['x-request-id']) };
  }

  /** Resumes a run's stream after item number `after`; resolves when the stream's first lines have come. */
  async takeUp(runId: string, after: number): Promise<Streamed> {
    const headers = { 'last-event-id': String(after) };
    const answer = await this.open(`${this.path}/runs/${runId}/stream`, { method: 'GET', headers });
    const events = new EventReader(answer);
    if (answer.statusCode === 200) await events.next();
    return { answer, events, runId };
  }

  async lookUp(runId: string): Promise<LookedUp> {
    return looked(await this.#look(runId));
  }

  /** Returns the look-up after the run's end. Repeats the look-up while the store is down. */
  ended(runId: string): Promise<LookedUp> {
    return until(async () => {
      const answer = await this.#look(runId);
      if (answer.status === 503) return undefined;
      const found = looked(answer);
      return found.status !== 'queued' && found.status !== 'running' && found;
    });
  }

  #look(runId: string): Promise<Answer> {
    return this.request(`${this.path}/runs/${runId}`, { method: 'GET' });
  }

  /** Cancels a run. */
  cancel(runId: string): Promise<Answer> {
    return this.request(`${this.path}/runs/${runId}/cancel`);
  }

  /** Resolves when the app is ready. @param state another state to wait for */
  async ready(app: string, state = 'ready'): Promise<void> {
    await until(async () => {
      const { status, text } = await this.request(this.path, { method: 'GET' });
      if (status !== 200) return false;
      const { apps } = JSON.parse(text) as { apps: { app: string; state: string }[] };
      return apps.some((one) => one.app === app && one.state === state);
    });
  }

  #url(fn: string, { query = '' }: CallOptions): string {
    return `${this.path}/${fn}${query}`;
  }

  #withToken(options: RequestOptions): RequestOptions {
    return { ...options, headers: { authorization: this.bearer, ...options.headers } };
  }
}

const bodyOf = (params: object | string): string => (typeof params === 'string' ? params : JSON.stringify(params));

/** @throws Error if the answer is not a look-up */
function looked({ status, text }: Answer): LookedUp {
  if (status !== 200) throw new Error(`the look-up answered ${status}: ${text}`);
  return JSON.parse(text) as LookedUp;
}
