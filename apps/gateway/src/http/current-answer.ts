// RFC 9110 §13.1.2: answers of reads that clients repeat. A client that has the present answer already receives 304 without a body.
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SERVER, send } from './answer.ts';

/**
 * Sends a JSON value with its tag, or 304 if the request names this tag. No cache keeps the answer (`no-store`), because the answer belongs
 * to a token: the client itself keeps the answer and sends `If-None-Match`.
 */
export function sendCurrent(request: FastifyRequest, reply: FastifyReply, answer: object | Buffer): void {
  const body = Buffer.isBuffer(answer) ? answer : Buffer.from(JSON.stringify(answer));
  const etag = `"${createHash('sha1').update(body).digest('base64url')}"`;
  const headers = { 'cache-control': 'no-store', etag };
  const { raw } = reply.hijack();
  if (!namesTag(request.headers['if-none-match'], etag)) send(raw, request.id, 200, body, headers);
  else if (!raw.destroyed) raw.writeHead(304, { ...headers, 'x-request-id': request.id, server: SERVER }).end();
}

/** Returns whether an `If-None-Match` names a tag. A proxy that compresses answers makes tags weak (`W/`). */
export const namesTag = (header: string | undefined, etag: string): boolean =>
  header?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag) ?? false;
