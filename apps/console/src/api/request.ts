// Sends the requests of the console. The token is in a header, so no URL contains it.
import type { ErrorObject } from '../../generated/api/types.gen.ts';
import { signOut, token } from '../session/session.ts';
import { reportLoss } from './connection.ts';

/** The form of an operation in the generated types. */
export interface Operation {
  readonly url: string;
  readonly path?: object | undefined;
  readonly query?: object | undefined;
}

/** The parameters of an operation. */
export interface Given<Data extends Operation> {
  readonly path?: Data['path'];
  readonly query?: Data['query'];
  readonly signal?: AbortSignal | undefined;
}

/** An answer with an error, in the form of contract 2. */
export class ApiError extends Error {
  readonly status: number;
  readonly error: ErrorObject;
  readonly runId: string | undefined;

  constructor(status: number, error: ErrorObject, runId?: string) {
    super(error.message);
    this.status = status;
    this.error = error;
    this.runId = runId;
  }
}

/** No answer came: the network or the gateway is down. */
export class Unreachable extends Error {
  constructor() {
    super('The gateway does not answer.');
  }
}

/** Returns the URL of an operation. */
export function urlOf<Data extends Operation>(url: Data['url'], { path, query }: Given<Data>): string {
  const names = (path ?? {}) as Readonly<Record<string, string>>;
  const filled = url.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ''));
  const set = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? filled : `${filled}?${text}`;
}

/**
 * Sends a request with the token.
 *
 * @throws Unreachable if no answer comes
 */
export async function send(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${token.peek() ?? ''}`);
  try {
    return await fetch(url, { ...init, headers, cache: 'no-store', credentials: 'omit' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    reportLoss();
    throw new Unreachable();
  }
}

/** Reads the error of an answer. A proxy in between may answer with another form. */
export async function errorOf(answer: Response): Promise<ApiError> {
  const body: unknown = await answer.json().catch(() => undefined);
  const { error, run_id: runId } = (body ?? {}) as { error?: ErrorObject; run_id?: string };
  const message = `The answer has the status ${answer.status} and no error object.`;
  if (answer.status === 401) signOut(error?.message ?? 'The gateway refused the token.');
  return new ApiError(answer.status, error ?? { code: 'internal', message, retryable: answer.status >= 500 }, runId);
}

/** The last answers of reads, by URL. No cache of the browser keeps them, because they belong to the token. */
const kept = new Map<string, { readonly etag: string; readonly answer: unknown }>();
const MOST_KEPT = 50;
token.subscribe(() => kept.clear());

/** Keeps an answer. The answer that was kept first goes. */
function keep(url: string, etag: string, answer: unknown): void {
  kept.delete(url);
  kept.set(url, { etag, answer });
  const [oldest] = kept.keys();
  if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
}

/** @throws ApiError, Unreachable */
async function asked<Answer>(method: string, url: string, signal?: AbortSignal): Promise<Answer> {
  const before = method === 'GET' ? kept.get(url) : undefined;
  const answer = await send(url, {
    method,
    ...(signal && { signal }),
    // An unchanged answer costs the gateway a 304.
    ...(before && { headers: { 'if-none-match': before.etag } }),
  });
  if (answer.status === 304 && before) return before.answer as Answer;
  if (!answer.ok) throw await errorOf(answer);
  const value = answer.status === 204 ? undefined : ((await answer.json()) as unknown);
  const etag = answer.headers.get('etag');
  if (method === 'GET' && etag !== null) keep(url, etag, value);
  return value as Answer;
}

/** Asks for the answer of an operation. @throws ApiError, Unreachable */
export const get = <Data extends Operation, Answer>(url: Data['url'], given: Given<Data>): Promise<Answer> =>
  asked('GET', urlOf<Data>(url, given), given.signal);

/** Sends an operation without a body. @throws ApiError, Unreachable */
export const post = <Data extends Operation, Answer>(url: Data['url'], given: Given<Data>): Promise<Answer> =>
  asked('POST', urlOf<Data>(url, given), given.signal);
