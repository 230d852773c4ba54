// Contract 6, `CORS_ORIGINS`: which origins' pages may call (fetch.spec.whatwg.org, "CORS protocol"). No credentials: tokens come in a header that the page sets itself.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** `*` is every origin. */
export type Origins = '*' | ReadonlySet<string>;

/** What a page may read of an answer beyond its status, type and body. */
const EXPOSED = 'X-Request-Id, Idempotency-Replayed, Location, Preference-Applied, Retry-After, X-Should-Retry';
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
/** The longest that browsers honour (Chromium: 2 hours). */
const REMEMBERED_S = '7200';

/** `CORS_ORIGINS`. @throws Error that says what was expected */
export function corsOrigins(words: readonly string[]): Origins {
  if (words.includes('*')) return '*';
  const wrong = words.find((word) => URL.parse(word)?.origin !== word);
  if (wrong !== undefined) throw new Error(`expected origins such as https://app.example.com, got ${wrong}`);
  return new Set(words);
}

/**
 * Puts the headers on a response that every answer has, whoever writes it: those set before `writeHead` are merged into its head.
 *
 * @returns whether a page of the request's origin may call
 */
export function allowOrigin(origins: Origins, request: IncomingMessage, response: ServerResponse): boolean {
  // Caches keep the answers for several origins apart; a request without one may fill a cache, too.
  if (origins !== '*' && origins.size > 0) response.setHeader('vary', 'Origin');
  const { origin } = request.headers;
  if (origin === undefined || (origins !== '*' && !origins.has(origin))) return false;
  response.setHeader('access-control-allow-origin', origins === '*' ? '*' : origin);
  response.setHeader('access-control-expose-headers', EXPOSED);
  return true;
}

/**
 * The same headers for what could not be parsed, as lines of a head: a page that asked with too large a head is told so. Where every origin may
 * call, they need not know which one it was.
 *
 * @param packet what the parser was reading; a browser's head is in one, with its origin near the start
 */
export function originLines(origins: Origins, packet: Buffer | undefined): string[] {
  if (origins === '*') return ['access-control-allow-origin: *', `access-control-expose-headers: ${EXPOSED}`];
  if (origins.size === 0) return [];
  const origin = packet && originIn(packet.toString('latin1'));
  if (origin === undefined || !origins.has(origin)) return ['vary: Origin'];
  return ['vary: Origin', `access-control-allow-origin: ${origin}`, `access-control-expose-headers: ${EXPOSED}`];
}

const FIELD = 'origin:';

/** The value of `Origin` in a head that is not parsed; reads whole lines up to the first empty one. */
function originIn(head: string): string | undefined {
  const lines = head.split('\r\n').slice(1, -1);
  const end = lines.indexOf('');
  const line = lines.slice(0, end === -1 ? undefined : end).find((each) => each.toLowerCase().startsWith(FIELD));
  return line && withoutBlanks(line.slice(FIELD.length));
}

/** Removes spaces and tabs at both ends (RFC 9110 §5.6.3); `trim` would remove more than that. */
function withoutBlanks(text: string): string {
  const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t';
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(text[from])) from += 1;
  while (to > from && isBlank(text[to - 1])) to -= 1;
  return text.slice(from, to);
}

/** A browser's question before a call that is no simple one. It has no token, and needs none. */
export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;

/** Answers it for an origin that is allowed. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse, requestId: string): void {
  const asked = request.headers['access-control-request-headers'];
  response.writeHead(204, {
    'access-control-allow-methods': METHODS,
    // As asked: custom runtimes have headers of their own, and `*` would leave out `Authorization`.
    ...(asked !== undefined && { 'access-control-allow-headers': asked }),
    'access-control-max-age': REMEMBERED_S,
    'x-request-id': requestId,
  });
  response.end();
}

/** The value of `Vary` for an answer that also varies with `names`. */
export function varyWith(response: ServerResponse, names: string): string {
  const already = response.getHeader('vary');
  return already === undefined ? names : `${already}, ${names}`;
}
