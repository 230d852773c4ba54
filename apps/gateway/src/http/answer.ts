// Contract 2: writes JSON answers, errors and the empty 204 answer to the raw response. Nest's and Fastify's reply paths are not used.
// Other files write streams (streaming/), forwarded answers (passthrough/), large stored answers (stored-answer.ts) and preflights (cors.ts).
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type ErrorFields, errorObject, retryAfterOf, ServiceError } from '@inference-proxy/contracts';
import { isOpenAiPath, openAiError, shouldRetry } from './openai-errors.ts';
import { hasBody } from './request-head.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';
export const SERVER = 'inference-proxy';

/**
 * Limits for discarding a body that nobody reads: total time, time after its last byte, and bytes.
 * Most callers read no answer before they have sent everything. Without this step, they would see a reset instead of their 413 (RFC 9112 §9.6).
 */
const LINGER_MS = 5000;
const LINGER_IDLE_MS = 500;
const LINGER_BYTES = 32 * 1024 * 1024;

/** Copying a larger body would cost more than writing a second piece. */
const ONE_PIECE_BYTES = 4096;

/** Writes a whole answer with its body. `more` contains additional headers. */
export function send(
  raw: ServerResponse,
  requestId: string,
  status: number,
  body: Buffer,
  more?: OutgoingHttpHeaders,
): void {
  if (raw.destroyed || raw.headersSent) return;
  const unread = !raw.req.complete && hasBody(raw.req.headers);
  raw.writeHead(status, {
    'content-type': JSON_TYPE,
    'content-length': body.length,
    'x-request-id': requestId,
    server: SERVER,
    ...more,
    ...(unread && { connection: 'close' }),
  });
  if (unread) endAfterLingering(raw, body);
  // As latin1 text, which keeps every byte, the body is written in one piece with its head: 3 µs less.
  else if (body.length <= ONE_PIECE_BYTES) raw.end(body.toString('latin1'), 'latin1');
  else raw.end(body);
}

/** Answers 204, which ends an EventSource: no event follows the last event of the reader (contract 5). */
export function sendNothing(raw: ServerResponse, requestId: string): void {
  if (raw.destroyed) return;
  raw.writeHead(204, { 'x-request-id': requestId, 'cache-control': 'no-cache', server: SERVER }).end();
}

/**
 * Answers an error in the form of contract 2. On OpenAI paths, the answer has the members and the header that OpenAI clients read.
 *
 * An error that is not a ServiceError is answered as `internal`. Its text appears only in the log.
 */
export function sendError(raw: ServerResponse, requestId: string, error: unknown, more?: OutgoingHttpHeaders): void {
  const known = asServiceError(error);
  const fields = fieldsOf(known);
  const isOpenAi = isOpenAiPath(raw.req.url);
  const run = known.runId === undefined ? {} : { run_id: known.runId };
  const body = Buffer.from(JSON.stringify({ ...run, error: isOpenAi ? openAiError(fields) : errorObject(fields) }));
  send(raw, requestId, known.status, body, {
    ...retryAfter(fields, known.retryAfterS),
    ...(known.code === 'unauthorized' && { 'www-authenticate': challenge(raw.req.headers) }),
    ...shouldRetry(raw.req.url, fields),
    ...more,
  });
}

/** Returns the challenge of a 401 answer (RFC 6750 §3.1). It names an error only if the caller sent a token. */
const challenge = ({ authorization = '' }: IncomingHttpHeaders): string =>
  /^bearer +\S/i.test(authorization) ? 'Bearer error="invalid_token"' : 'Bearer';

export const asServiceError = (error: unknown): ServiceError =>
  error instanceof ServiceError ? error : new ServiceError('internal', 'Internal error.', { cause: error });

/** Returns the fields of an error in the form for `errorObject`. */
export const fieldsOf = (error: ServiceError): ErrorFields => ({
  code: error.code,
  message: error.message,
  ...(error.type !== undefined && { type: error.type }),
  ...(error.details !== undefined && { details: error.details }),
});

/** Returns the `Retry-After` header of an answer with this error. @param knownS seconds, if a better value than the error's is known */
export function retryAfter(
  error: Pick<ErrorFields, 'code' | 'status' | 'retryAfter'>,
  knownS?: number,
): OutgoingHttpHeaders | undefined {
  const value = retryAfterOf(error);
  return value === undefined ? undefined : { 'retry-after': knownS === undefined ? value : String(knownS) };
}

/**
 * Sends the answer, discards a bounded rest of the request's body, and then closes the connection.
 * Closing a socket with unread bytes makes the kernel send a reset, and a reset can take the answer away from the caller.
 */
function endAfterLingering(raw: ServerResponse, body: Buffer): void {
  const { req } = raw;
  const until = performance.now() + LINGER_MS;
  let dropped = 0;
  const end = (): void => {
    clearTimeout(timer);
    req.off('data', onData).off('end', end).off('close', end);
    raw.end();
  };
  const onData = (chunk: Buffer): void => {
    dropped += chunk.length;
    if (dropped > LINGER_BYTES || performance.now() > until) end();
    else timer.refresh();
  };
  const timer = setTimeout(end, LINGER_IDLE_MS);
  raw.write(body);
  req
    .on('data', onData)
    .once('end', end)
    .once('close', end)
    .on('error', () => {})
    .resume();
}
