// Contract 2 and 3: every answer is written here, in one call to the raw response; Nest's and Fastify's reply paths are not used.
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type ErrorFields, errorObject, retryAfterOf, ServiceError } from '@inference-proxy/contracts';
import { openAiError, shouldRetry } from '../openai/openai-errors.ts';
import { isOpenAiPath } from '../openai/openai-path.ts';
import { hasBody } from './has-body.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';
export const SERVER = 'inference-proxy';

/**
 * How long in all and after its last byte, and for how many bytes, a body that nobody wants is thrown away so that the answer before it arrives
 * (RFC 9112 §9.6): most callers read no answer before they have sent all, and a reset is all they would see of their 413.
 */
const LINGER_MS = 5000;
const LINGER_IDLE_MS = 500;
const LINGER_BYTES = 32 * 1024 * 1024;

/** Copying more would cost more than a second piece. */
const ONE_PIECE_BYTES = 4096;

/** A whole answer with its body. `more` are headers beyond those that every answer has. */
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
  // As text of one byte a character, which keeps every byte, it goes out in one piece with its head: 3 µs less.
  else if (body.length <= ONE_PIECE_BYTES) raw.end(body.toString('latin1'), 'latin1');
  else raw.end(body);
}

/** 204, which ends an EventSource: no event follows the last one that the reader has (contract 5). */
export function sendNothing(raw: ServerResponse, requestId: string): void {
  if (raw.destroyed) return;
  raw.writeHead(204, { 'x-request-id': requestId, 'cache-control': 'no-cache', server: SERVER }).end();
}

/**
 * Answers a failure in contract 2's form; on OpenAI paths with the members and the header that OpenAI's clients read.
 *
 * An error that is no ServiceError is answered as `internal`: its text stays in the log.
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

/** RFC 6750 §3.1: what was wrong is named where a token was sent. */
const challenge = ({ authorization = '' }: IncomingHttpHeaders): string =>
  /^bearer +\S/i.test(authorization) ? 'Bearer error="invalid_token"' : 'Bearer';

export const asServiceError = (error: unknown): ServiceError =>
  error instanceof ServiceError ? error : new ServiceError('internal', 'Internal error.', { cause: error });

/** What `errorObject` takes, of a thrown error. */
export const fieldsOf = (error: ServiceError): ErrorFields => ({
  code: error.code,
  message: error.message,
  ...(error.type !== undefined && { type: error.type }),
  ...(error.details !== undefined && { details: error.details }),
});

/** Returns the `Retry-After` header of an answer with this error. @param knownS seconds, if more is known than the error says */
export function retryAfter(
  error: Pick<ErrorFields, 'code' | 'status' | 'retryAfter'>,
  knownS?: number,
): OutgoingHttpHeaders | undefined {
  const value = retryAfterOf(error);
  return value === undefined ? undefined : { 'retry-after': knownS === undefined ? value : String(knownS) };
}

/**
 * Closing a socket that still holds unread bytes makes the kernel send a reset, which can take the answer away from the caller. So the
 * answer goes out first, and a bounded rest of the body is thrown away before the connection is closed.
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
