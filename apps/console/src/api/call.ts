// Contract 1: calls a function, with the options that a person chose.
import { send } from './request.ts';

export interface CallOptions {
  readonly stream?: boolean;
  readonly async?: boolean;
  readonly webhook?: string;
  readonly secret?: string;
  readonly signal?: AbortSignal;
}

/** Returns the path of a function. */
export const pathOf = (project: string, app: string, fn: string): string =>
  `/v4/${[project, app, fn].map(encodeURIComponent).join('/')}`;

/** Returns the path and query of a call. */
export function urlOfCall(path: string, { stream, async, webhook }: CallOptions): string {
  const query = new URLSearchParams();
  if (async) query.set('async', 'true');
  if (stream) query.set('ids', 'true');
  if (webhook) query.set('webhookEndpoint', webhook);
  return query.size === 0 ? path : `${path}?${query}`;
}

/**
 * Calls a function. The answer has any status.
 *
 * @param body JSON text, or a form with files
 * @throws Unreachable if no answer comes
 */
export function call(path: string, body: string | FormData, options: CallOptions): Promise<Response> {
  const headers = new Headers();
  // The browser adds the boundary to the content type of a form.
  if (typeof body === 'string') headers.set('content-type', 'application/json');
  if (options.stream) headers.set('accept', 'text/event-stream');
  if (options.webhook && options.secret) headers.set('x-webhook-secret', options.secret);
  const { signal = null } = options;
  return send(urlOfCall(path, options), { method: 'POST', body, headers, signal });
}
