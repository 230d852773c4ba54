// Contract 6, "Ports and pages": answers with a file of a page, compressed, with a tag, and with a strict policy.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SERVER, send } from '../http/answer.ts';
import { namesTag } from '../http/current-answer.ts';
import { accepts } from '../http/request-head.ts';
import type { PageFile } from './page-files.ts';

/**
 * The page runs only the files of this service, and sends a token only to this service. Results of functions are shown as images, sounds and
 * films by `blob:` URLs, which run nothing.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  'media-src blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  // For browsers that do not know `frame-ancestors`.
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  vary: 'Accept-Encoding',
};

/**
 * How long browsers keep a file. `always` asks again for each use. `forever` is for files whose name contains a hash of their bytes.
 */
export type Caching = 'always' | 'forever';
const CACHE_CONTROL: Readonly<Record<Caching, string>> = {
  always: 'no-cache',
  forever: 'public, max-age=31536000, immutable',
};

export function answerFile(request: FastifyRequest, reply: FastifyReply, file: PageFile, caching: Caching): void {
  const { type, etag, bytes, gzipped } = file;
  const { raw } = reply.hijack();
  const headers = { ...HEADERS, 'cache-control': CACHE_CONTROL[caching], etag };
  if (namesTag(request.headers['if-none-match'], etag)) {
    if (!raw.destroyed) raw.writeHead(304, { ...headers, 'x-request-id': request.id, server: SERVER }).end();
    return;
  }
  const isGzipped =
    gzipped.length < bytes.length && accepts(request.headers['accept-encoding'], ['gzip', 'x-gzip', '*']);
  send(raw, request.id, 200, isGzipped ? gzipped : bytes, {
    ...headers,
    'content-type': type,
    ...(isGzipped && { 'content-encoding': 'gzip' }),
  });
}
