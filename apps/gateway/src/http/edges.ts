// RFC 9110 and 9112, contract 1 and 6: what is settled before a route is looked for, and costs no token, no body and no run.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorCode, errorObject, ServiceError } from '@inference-proxy/contracts';
import { send, sendError } from './answer.ts';
import { allowOrigin, answerPreflight, isPreflight, type Origins } from './cors.ts';
import { headerCount } from './header-count.ts';

const CONTINUE = /^100-continue$/i;
const WEBSOCKET = /(^|[\s,])websocket($|[\s,/])/i;
/** The root of an app, as a base URL that ends in a slash asks for it. */
const SLASHED_ROOT = /^(\/v4\/[^/?]+\/[^/?]+)\/(?=\?|$)/;
const ABSOLUTE = /^https?:\/\/[^/?#]*/i;

export interface Edge {
  readonly origins: Origins;
  readonly newRequestId: () => string;
  /** Told of every error that is answered here. */
  readonly count: (code: ErrorCode) => void;
}

/**
 * Answers what needs no route; makes of the rest what the routes expect.
 *
 * @returns whether the request has been answered
 */
export function answeredAtTheEdge(
  { origins, newRequestId, count }: Edge,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const allowed = allowOrigin(origins, request, response);
  const wrong = wrongFraming(request) ?? wrongTarget(request) ?? websocket(request);
  if (wrong !== undefined) {
    // Where its framing is in doubt, so is what follows on the connection.
    response.shouldKeepAlive = false;
    count(wrong.code);
    sendError(response, newRequestId(), wrong);
    return true;
  }
  if (unmetExpectation(request)) {
    const error = errorObject({ code: 'invalid_request', message: 'No such expectation can be met.' });
    count('invalid_request');
    send(response, newRequestId(), 417, Buffer.from(JSON.stringify({ error })));
    return true;
  }
  if (!allowed || !isPreflight(request)) return false;
  answerPreflight(request, response, newRequestId());
  return true;
}

/** RFC 9112 §2.3: a version that is ours. §3.2: one `Host`, also where nobody looks at it. §6.1: HTTP/1.0 knows no transfer codings, and no other than `chunked` is decoded. */
function wrongFraming({ httpVersion, headers, rawHeaders }: IncomingMessage): ServiceError | undefined {
  // Node's parser lets 0.9 and 2.0 through, which are other protocols.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return new ServiceError('invalid_request', 'Expected HTTP/1.1.');
  const hosts = headerCount(rawHeaders, 'host');
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1'))
    return new ServiceError('invalid_request', 'Expected one `Host` header.');
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked')) {
    return new ServiceError('invalid_request', 'Expected no transfer coding but `chunked`.');
  }
  return undefined;
}

/** RFC 9112 §3.2.2: a target may be a whole URL, as proxies are sent; routes know paths. */
function wrongTarget(request: IncomingMessage): ServiceError | undefined {
  const { url = '', method } = request;
  // The router would take what comes after the slash for a function without a name.
  if (SLASHED_ROOT.test(url)) request.url = url.replace(SLASHED_ROOT, '$1');
  if (url.startsWith('/') || (url === '*' && method === 'OPTIONS')) return undefined;
  const path = url.replace(ABSOLUTE, '');
  if (path === url) return new ServiceError('invalid_request', 'Expected a path.');
  request.url = path.startsWith('/') ? path : `/${path}`;
  return undefined;
}

function websocket({ headers }: IncomingMessage): ServiceError | undefined {
  if (headers.upgrade === undefined || !WEBSOCKET.test(headers.upgrade)) return undefined;
  return new ServiceError(
    'not_implemented',
    'Websockets are not supported; ask for a stream by `Accept: text/event-stream`.',
  );
}

/** RFC 9110 §10.1.1: an expectation in HTTP/1.0 does not count, and the only one there is asks before it sends a body. */
function unmetExpectation({ headers, httpVersion }: IncomingMessage): boolean {
  if (headers.expect === undefined) return false;
  if (httpVersion === '1.1') return !CONTINUE.test(headers.expect);
  delete headers.expect;
  return false;
}
