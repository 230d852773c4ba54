// Contract 1: reads a CallRequest from headers and query. Pure. Wrong values are rejected before the first byte of the body is read.
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { type FunctionSpec, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { WebhookUrls } from '@inference-proxy/egress';
import { isForm } from '../forms/form-body.ts';
import {
  accepts,
  type CallPath,
  hasBody,
  Query,
  type RequestHead,
  refused,
  textHeaderOnce,
} from '../http/request-head.ts';
import { durationMs } from '../http/values.ts';
import { resumePoint } from '../streaming/resume-point.ts';
import { type StreamForm, streamFormOf } from '../streaming/stream-form.ts';
import { idempotencyKeyOf } from './idempotency.ts';
import { preferences } from './preferences.ts';
import { checkQueryNames } from './query-names.ts';

/** The longest time of a Node timer: over three weeks. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;
const NO_PARAMETERS = Buffer.from('{}');

/** Milliseconds without a reader after which the run is cancelled (0: at once, `cancel`), or `continue`. */
type OnDisconnect = number | 'continue';

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
  readonly method: string;
  /** The requested path without its query. For a custom runtime: with the query that its server receives. */
  readonly path: string;
  /** The caller asks for a stream. */
  readonly stream: boolean;
  /** The answer is the body that a custom runtime, or a function with a media type, sends. The run decides whether it is a stream. */
  readonly forwarded: boolean;
  readonly gzip: boolean;
  readonly form: StreamForm;
  /** With an `Idempotency-Key`: number of the last event of the joined stream that the caller has. */
  readonly after?: number;
  /** How long the caller waits, ms. Then (0: at once) the answer is 202 and the run continues. Absent: until the run ends. */
  readonly waitMs?: number;
  /** The preferences (RFC 7240 §3) that the 202 answer reports as applied. */
  readonly preferenceApplied?: string;
  readonly webhook?: Webhook;
  /** The content type of a body that is a form. Absent: the body is JSON. */
  readonly formType?: string;
  readonly idempotencyKey?: string;
  /** A client may fetch the result later. docs/contract.md, "Words", lists the options that promise a run. */
  readonly promised: boolean;
  /** Time without a reader after which the run is cancelled, ms. Absent: the run continues. */
  readonly absentMs?: number;
}

/** The options of the answer. Calls to functions and calls to custom runtimes express them differently. */
export type AnswerOptions = Pick<CallRequest, 'path' | 'stream' | 'form' | 'after' | 'forwarded'>;

/** Returns the call of a function. If the function declares a media type, its bytes are the answer, unless the caller asks for events. */
export function answeredByMedia(call: CallRequest, functions: readonly FunctionSpec[]): CallRequest {
  if (call.stream) return call;
  const media = functions.find(({ name }) => name === call.fn)?.media;
  return media === undefined ? call : { ...call, forwarded: true };
}

/**
 * Reads the call of a function. @throws ServiceError `invalid_request`, `unsupported_media_type`
 *
 * @param forms whether the body may be a form
 */
export function callRequest(
  runId: RunId,
  path: CallPath,
  head: RequestHead,
  webhooks: WebhookUrls,
  forms = false,
): CallRequest {
  const { headers, url = '' } = head;
  const formType = checkContentType(headers, forms);
  const query = Query.of(url);
  if (query.text !== '') checkQueryNames(query);
  const after = headers['idempotency-key'] === undefined ? undefined : resumePoint(query, head.rawHeaders);
  const call = withCallOptions(runId, path, head, query, webhooks, {
    path: url.split('?', 1)[0] as string,
    stream: accepts(headers.accept, ['text/event-stream']),
    form: query.text === '' ? 'plain' : streamFormOf(query),
    ...(after !== undefined && { after }),
    forwarded: false,
  });
  return formType === undefined ? call : { ...call, formType };
}

/** Reads the options that all calls share, and adds the options of the answer. @throws ServiceError `invalid_request` */
export function withCallOptions(
  runId: RunId,
  path: CallPath,
  head: RequestHead,
  query: Query,
  webhooks: WebhookUrls,
  answer: AnswerOptions,
): CallRequest {
  const { headers, method = '' } = head;
  const webhook = query.text === '' ? undefined : webhookOf(query, head, webhooks);
  const waiting = waitingOf(query, headers.prefer);
  const idempotencyKey = headers['idempotency-key'] === undefined ? undefined : idempotencyKeyOf(head.rawHeaders);
  const onDisconnect = onDisconnectOf(query);
  const lastsBeyondCaller = onDisconnect !== undefined && onDisconnect !== 0;
  const promised = waiting !== undefined || webhook !== undefined || idempotencyKey !== undefined || lastsBeyondCaller;
  const absentMs = onDisconnect ?? (promised ? 'continue' : 0);
  return {
    runId,
    project: path.project,
    app: path.app,
    fn: path.function,
    method,
    path: answer.path,
    stream: answer.stream,
    gzip: accepts(headers['accept-encoding'], ['gzip', 'x-gzip', '*']),
    form: answer.form,
    ...(answer.after !== undefined && { after: answer.after }),
    forwarded: answer.forwarded,
    promised,
    // A caller that is answered at once is no reader, so its disconnect cannot cancel the run.
    ...(absentMs !== 'continue' && !(absentMs === 0 && waiting?.waitMs === 0) && { absentMs }),
    ...waiting,
    ...(webhook && { webhook }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

/** Returns the content type of a form, or undefined for JSON. @throws ServiceError `unsupported_media_type` */
function checkContentType(headers: IncomingHttpHeaders, forms: boolean): string | undefined {
  if (!hasBody(headers)) return undefined;
  const type = headers['content-type'];
  const [essence = ''] = (type ?? '').split(';', 1);
  const isJson = type === 'application/json' || essence.trim().toLowerCase() === 'application/json';
  const formType = !isJson && forms && type !== undefined && isForm(type) ? type : undefined;
  if (!isJson && formType === undefined) {
    throw new ServiceError('unsupported_media_type', 'The body must be `Content-Type: application/json`.');
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    throw new ServiceError(
      'unsupported_media_type',
      'A body with a `Content-Encoding` is not supported; send it uncompressed.',
    );
  }
  return formType;
}

/**
 * Returns how long the caller waits. `async=true` answers at once, and a `wait` is then ignored.
 * `respond-async` answers at once if the header has no `wait`.
 */
function waitingOf(
  query: Query,
  prefer: string | string[] | undefined,
): (Required<Pick<CallRequest, 'waitMs'>> & Pick<CallRequest, 'preferenceApplied'>) | undefined {
  const async = query.flag('async');
  if (prefer === undefined) return async ? { waitMs: 0 } : undefined;
  const { respondAsync, waitS } = preferences(String(prefer));
  if (async) return { waitMs: 0, ...(respondAsync && { preferenceApplied: 'respond-async' }) };
  if (waitS === undefined) return respondAsync ? { waitMs: 0, preferenceApplied: 'respond-async' } : undefined;
  return {
    waitMs: Math.min(waitS * 1000, LONGEST_WAIT_MS),
    preferenceApplied: `${respondAsync ? 'respond-async, ' : ''}wait=${waitS}`,
  };
}

function webhookOf(query: Query, head: RequestHead, webhooks: WebhookUrls): Webhook | undefined {
  const url = webhooks.asked(query.text);
  if (url === undefined) return undefined;
  const secret = textHeaderOnce(head.rawHeaders, 'X-Webhook-Secret');
  // Node reads header bytes as Latin-1.
  return { url, ...(secret !== undefined && { secret: Buffer.from(secret, 'latin1') }) };
}

/**
 * Returns the value of `onDisconnect` in a query, or undefined if the query has none.
 *
 * @throws ServiceError `invalid_request`
 */
function onDisconnectOf(query: Query): OnDisconnect | undefined {
  const value = query.once('onDisconnect');
  if (value === undefined || value === 'continue') return value;
  const ms = value === 'cancel' ? 0 : durationMs(value);
  if (ms === undefined) throw refused('onDisconnect', 'must be `cancel`, `continue` or a number of seconds');
  return ms;
}

/** A checked body: its bytes, and the value of a JSON body, which is parsed once. */
export interface CheckedBody {
  readonly bytes: Buffer;
  /** The parameters of a function. Absent for a custom runtime. */
  readonly value?: object;
}

/**
 * Returns the body if it is a JSON object. An empty body counts as `{}`.
 *
 * @throws ServiceError `invalid_request`
 */
export function parametersOf(bytes: Buffer): CheckedBody {
  if (bytes.length === 0) return { bytes: NO_PARAMETERS, value: {} };
  let value: unknown;
  try {
    if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8');
    value = JSON.parse(bytes.toString());
  } catch {
    throw new ServiceError('invalid_request', 'The body is not JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServiceError('invalid_request', 'The body must be a JSON object: the function’s parameters.');
  }
  return { bytes, value };
}
