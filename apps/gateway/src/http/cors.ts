// Contract 6, `CORS_ORIGINS`: decides which origins' pages may call (fetch.spec.whatwg.org, "CORS protocol").
// Credentials are not allowed, because a page sets the header with its token itself.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** `*` allows every origin. */
export type Origins = '*' | ReadonlySet<string>;

/** Headers that a page may read beyond an answer's status, type and body. */
const EXPOSED = 'X-Request-Id, Idempotency-Replayed, Location, Preference-Applied, Retry-After, X-Should-Retry';
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
/** The longest time that browsers honour (Chromium: 2 hours). */
const REMEMBERED_S = '7200';

/** Reads `CORS_ORIGINS`. @throws Error with the expected form */
export function corsOrigins(words: readonly string[]): Origins {
  if (words.includes('*')) return '*';
  const wrong = words.find((word) => URL.parse(word)?.origin !== word);
  if (wrong !== undefined) throw new Error(`expected origins such as https://app.example.com, got ${wrong}`);
  return new Set(words);
}

/**
 * Sets the CORS headers of an answer before its head is written. `writeHead` keeps headers that are set earlier.
 *
 * @param origins at least one
 * @returns whether a page of the request's origin may call
 */
export function allowOrigin(origins: Origins, request: IncomingMessage, response: ServerResponse): boolean {
  // Caches must separate the answers to different origins. A request without an origin may fill a cache, too.
  if (origins !== '*') response.setHeader('vary', 'Origin');
  const { origin } = request.headers;
  if (origin === undefined || (origins !== '*' && !origins.has(origin))) return false;
  response.setHeader('access-control-allow-origin', origins === '*' ? '*' : origin);
  response.setHeader('access-control-expose-headers', EXPOSED);
  return true;
}

/**
 * Returns the same headers as lines of a head, for a request that could not be parsed. A page can then read that its head is too large.
 * If every origin may call, the request's origin is not needed.
 *
 * @param packet the bytes that the parser was reading. A browser's head is in one packet, with the origin near the start
 */
export function originLines(origins: Origins, packet: Buffer | undefined): string[] {
  if (origins === '*') return ['access-control-allow-origin: *', `access-control-expose-headers: ${EXPOSED}`];
  if (origins.size === 0) return [];
  const origin = packet && originIn(packet.toString('latin1'));
  if (origin === undefined || !origins.has(origin)) return ['vary: Origin'];
  return ['vary: Origin', `access-control-allow-origin: ${origin}`, `access-control-expose-headers: ${EXPOSED}`];
}

const FIELD = 'origin:';

/** Returns the value of `Origin` in an unparsed head. Reads whole lines up to the first empty line. */
function originIn(head: string): string | undefined {
  const lines = head.split('\r\n').slice(1, -1);
  const end = lines.indexOf('');
  const line = lines.slice(0, end === -1 ? undefined : end).find((each) => each.toLowerCase().startsWith(FIELD));
  return line && withoutBlanks(line.slice(FIELD.length));
}

/** Removes spaces and tabs at both ends (RFC 9110 §5.6.3). `trim` would remove other characters, too. */
function withoutBlanks(text: string): string {
  const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t';
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(text[from])) from += 1;
  while (to > from && isBlank(text[to - 1])) to -= 1;
  return text.slice(from, to);
}

/** Returns whether the request is a preflight: a browser's question before a call that is not simple. A preflight has no token and needs none. */
export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;

/** Answers the preflight of an allowed origin. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse, requestId: string): void {
  const asked = request.headers['access-control-request-headers'];
  response.writeHead(204, {
    'access-control-allow-methods': METHODS,
    // The asked headers are returned by name: custom runtimes have their own headers, and `*` would leave out `Authorization`.
    ...(asked !== undefined && { 'access-control-allow-headers': asked }),
    'access-control-max-age': REMEMBERED_S,
    'x-request-id': requestId,
  });
  response.end();
}
