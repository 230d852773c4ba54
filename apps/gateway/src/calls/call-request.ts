// Contract 1: headers and query into a CallRequest. Pure: what is wrong is known before a byte of the body is read.
import type { IncomingHttpHeaders } from 'node:http';
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import { type AddressPolicy, judgeWebhookUrl, webhookEndpointOf } from '@inference-proxy/egress';
import { hasBody } from '../http/has-body.ts';

export interface Webhook {
  readonly url: string;
  /** The header's bytes as received. */
  readonly secret?: Buffer;
}

export interface CallRequest {
  readonly runId: RunId;
  readonly project: string;
  readonly app: string;
  readonly fn: string;
  /** The caller wants a stream. */
  readonly stream: boolean;
  readonly gzip: boolean;
  /** Answer 202 at once: asked for by the query, or by a preference (RFC 7240) that the answer then names. */
  readonly async: false | 'query' | 'preference';
  readonly webhook?: Webhook;
}

/** What of an HTTP request a call is read from. */
export interface RequestHead {
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Names and values as received: Node joins or drops repeated headers. */
  readonly rawHeaders: readonly string[];
}

export interface CallPath {
  readonly project: string;
  readonly app: string;
  readonly function: string;
}

export interface WebhookRules {
  readonly policy: AddressPolicy;
  readonly requireHttps: boolean;
}

/** @throws ServiceError `invalid_request`, `unsupported_media_type` */
export function callRequest(runId: RunId, path: CallPath, head: RequestHead, rules: WebhookRules): CallRequest {
  const { headers, url = '' } = head;
  checkContentType(headers);
  const mark = url.indexOf('?');
  const query = mark === -1 ? '' : url.slice(mark + 1);
  const webhook = query === '' ? undefined : webhookOf(query, head, rules);
  return {
    runId,
    project: path.project,
    app: path.app,
    fn: path.function,
    stream: accepts(headers.accept, ['text/event-stream']),
    gzip: accepts(headers['accept-encoding'], ['gzip', 'x-gzip', '*']),
    async: asksAsync(query) ? 'query' : prefersAsync(headers.prefer) ? 'preference' : false,
    ...(webhook && { webhook }),
  };
}

function checkContentType(headers: IncomingHttpHeaders): void {
  if (!hasBody(headers)) return;
  const type = headers['content-type'];
  const [essence = ''] = (type ?? '').split(';', 1);
  if (type !== 'application/json' && essence.trim().toLowerCase() !== 'application/json') {
    throw new ServiceError('unsupported_media_type', 'The body must be `Content-Type: application/json`.');
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    throw new ServiceError('unsupported_media_type', 'A body with a `Content-Encoding` is not read.');
  }
}

/**
 * Whether a list with q-values (RFC 9110 §12.4.2) holds one of `wanted` with a q above zero. The first of `wanted` that is listed decides.
 *
 * @param wanted in lower case, without parameters
 */
export function accepts(list: string | undefined, wanted: readonly string[]): boolean {
  if (list === undefined) return false;
  const lower = list.toLowerCase();
  if (!wanted.some((name) => lower.includes(name))) return false;
  const listed = new Map<string, boolean>();
  for (const element of lower.split(',')) {
    const [name = '', ...parameters] = element.split(';').map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    listed.set(name, (listed.get(name) ?? false) || q === undefined || Number(q) > 0);
  }
  const decisive = wanted.find((name) => listed.has(name));
  return decisive !== undefined && listed.get(decisive) === true;
}

function asksAsync(query: string): boolean {
  if (!query.includes('async')) return false;
  const values = new URLSearchParams(query).getAll('async');
  const [value = 'false'] = values;
  if (values.length > 1 || (value !== 'true' && value !== 'false')) {
    throw new ServiceError('invalid_request', '`async` must be `true` or `false`, and given once.');
  }
  return value === 'true';
}

/** RFC 7240 §4.1. */
const prefersAsync = (prefer: string | string[] | undefined): boolean =>
  prefer !== undefined && /(?:^|,)\s*respond-async\s*(?:=\s*(?:""\s*)?)?(?:[;,]|$)/i.test(String(prefer));

function webhookOf(query: string, head: RequestHead, rules: WebhookRules): Webhook | undefined {
  const endpoint = webhookEndpointOf(query);
  if (endpoint === undefined) return undefined;
  const url = judgeWebhookUrl(endpoint, rules.policy, { requireHttps: rules.requireHttps });
  const secret = webhookSecret(head.rawHeaders);
  return { url, ...(secret && { secret }) };
}

function webhookSecret(rawHeaders: readonly string[]): Buffer | undefined {
  const values = rawHeaders.filter((_, index) => index % 2 === 1 && isSecretName(rawHeaders[index - 1]));
  const [value] = values;
  if (value === undefined) return undefined;
  if (values.length > 1) throw new ServiceError('invalid_request', 'X-Webhook-Secret is given more than once.');
  if (value.trim() === '') throw new ServiceError('invalid_request', 'X-Webhook-Secret is empty.');
  // Node reads header bytes as Latin-1.
  return Buffer.from(value, 'latin1');
}

const isSecretName = (name: string | undefined): boolean => name?.toLowerCase() === 'x-webhook-secret';
