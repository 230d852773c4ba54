// RFC 9110 and 9112, contract 1 and 6: answers requests that need no route, before they cost a token check, a body or a run.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorCode, errorObject, ServiceError } from '@inference-proxy/contracts';
import { send, sendError } from './answer.ts';
import { allowOrigin, answerPreflight, isPreflight, type Origins } from './cors.ts';
import { headerCount } from './once.ts';

const CONTINUE = /^100-continue$/i;
const WEBSOCKET = /(^|[\s,])websocket($|[\s,/])/i;
/** The root of an app with a final slash, as some clients write a base URL. */
const SLASHED_ROOT = /^(\/v4\/[^/?]+\/[^/?]+)\/(?=\?|$)/;
const ABSOLUTE = /^https?:\/\/[^/?#]*/i;

export interface Edge {
  readonly origins: Origins;
  readonly newRequestId: () => string;
  /** Called with the code of every error that is answered here. */
  readonly count: (code: ErrorCode) => void;
}

/**
 * Answers requests that need no route, and gives other requests the form that the routes expect.
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
    // If the framing is in doubt, the following bytes on the connection are in doubt too.
    response.shouldKeepAlive = false;
    count(wrong.code);
    sendError(response, newRequestId(), wrong);
    return true;
  }
  if (unmetExpectation(request)) {
    const error = errorObject({
      code: 'invalid_request',
      message: 'This `Expect` is not supported; send the request without it.',
    });
    count('invalid_request');
    send(response, newRequestId(), 417, Buffer.from(JSON.stringify({ error })));
    return true;
  }
  if (!allowed || !isPreflight(request)) return false;
  answerPreflight(request, response, newRequestId());
  return true;
}

/**
 * Checks the framing. RFC 9112 §2.3: the version is 1.0 or 1.1. §3.2: there is one `Host`, even if no route reads it.
 * §6.1: HTTP/1.0 has no transfer codings. The gateway decodes no transfer coding except `chunked`.
 */
function wrongFraming({ httpVersion, headers, rawHeaders }: IncomingMessage): ServiceError | undefined {
  // Node's parser accepts 0.9 and 2.0, which are other protocols.
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

/** Checks the target. A whole URL, as clients send it to proxies (RFC 9112 §3.2.2), becomes a path, because routes know paths only. */
function wrongTarget(request: IncomingMessage): ServiceError | undefined {
  const { url = '', method } = request;
  // The router would read the text after the slash as a function without a name.
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

/**
 * Returns whether the gateway cannot meet the request's expectation. In HTTP/1.0 an expectation does not count (RFC 9110 §10.1.1).
 * The only known expectation is `100-continue`: the caller asks before it sends its body.
 */
function unmetExpectation({ headers, httpVersion }: IncomingMessage): boolean {
  if (headers.expect === undefined) return false;
  if (httpVersion === '1.1') return !CONTINUE.test(headers.expect);
  delete headers.expect;
  return false;
}
