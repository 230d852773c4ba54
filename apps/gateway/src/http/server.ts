// Contract 1, 2 and 6, RFC 9110 and 9112: the HTTP server, Fastify under Nest. Requests that need no route are answered before a token check.
// Answers that Node or Fastify would write by themselves get the form of contract 2.
import {
  createServer,
  type IncomingMessage,
  METHODS,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorObject, type RunId, ServiceError } from '@inference-proxy/contracts';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { send, sendError } from './answer.ts';
import { allowOrigin, answerPreflight, isPreflight, type Origins } from './cors.ts';
import type { ErrorFilter } from './error.filter.ts';
import { headerCount } from './request-head.ts';
import { answerConnect, answerUnparsed, type UnroutedParts } from './unparsed.ts';

/** Load balancers keep connections for 60 s. They must close first, because a call on a connection that the gateway closes is lost. */
const IDLE_MS = 75_000;
const PROBE_AFTER_MS = 30_000;
/** Extra time for a request beyond the time for its body (calls/bodies.ts, versions/bundle-body.ts), so that the gateway can answer a late body. */
const SLACK_MS = 5000;
const LONGEST_CHECK_MS = 15_000;
/** The longest head that Node accepts. The first segment of a path below an app may be any text. */
const LONGEST_SEGMENT = 16 * 1024;

const CONTINUE = /^100-continue$/i;
const WEBSOCKET = /(^|[\s,])websocket($|[\s,/])/i;
/** The root of an app with a final slash, as some clients write a base URL. */
const SLASHED_ROOT = /^(\/v4\/[^/?]+\/[^/?]+)\/(?=\?|$)/;
const ABSOLUTE = /^https?:\/\/[^/?#]*/i;

export interface ServerParts {
  readonly filter: ErrorFilter;
  readonly newRequestId: () => RunId;
  readonly origins: Origins;
  /** A quarter of this time is for the head of a request, ms. The reader of a body limits the body's time. The time of an answer has no limit. */
  readonly requestMs: number;
  /** Longest time for a whole request, ms: that of the longest body. */
  readonly longestMs: number;
  /** Longest time in which a reader takes no bytes of its answer, ms. */
  readonly stallMs: number;
}

/** Returns Nest's adapter. `X-Request-Id` of every request is an id that a run may have. */
export function httpServer({
  filter,
  newRequestId,
  origins,
  requestMs,
  longestMs,
  stallMs,
}: ServerParts): FastifyAdapter {
  /** The newest response of each connection. When this response is sent, all earlier responses are sent. */
  const newest = new WeakMap<Duplex, ServerResponse>();
  const unfinished = (socket: Duplex): ServerResponse | undefined => {
    const response = newest.get(socket);
    return response?.writableFinished === false ? response : undefined;
  };

  const unrouted: UnroutedParts = { origins, newRequestId, count: filter.count };

  function serverInFrontOf(route: RequestListener): Server {
    const server = createServer(limits(requestMs, longestMs), (request, response) => {
      newest.set(request.socket, response);
      if (!answeredWithoutRoute(unrouted, request, response)) route(request, response);
    });
    // Node would silently drop headers beyond a number. Their size has its own limit.
    server.maxHeadersCount = 0;
    // Node calls this after that time without activity on a connection. Progress of a write counts as activity.
    server.setTimeout(Math.ceil(stallMs), (socket) => {
      const response = newest.get(socket);
      const isWaitingForUs = response?.writableFinished === false && socket.writableLength === 0;
      // A request that does not arrive has its own time limits.
      if (response !== undefined && !isWaitingForUs) socket.destroy();
    });
    // `Expect: 100-continue` is answered when the body is needed (calls/bodies.ts), after the guard.
    const pass: RequestListener = (request, response) => server.emit('request', request, response);
    server.on('checkContinue', pass).on('checkExpectation', pass);
    server.on('connect', (_, socket) => answerConnect(socket, unfinished(socket) !== undefined, unrouted));
    // A caller that closes its side after the request still gets its answer. http/open-calls.ts finds out whether the caller has left.
    return Object.assign(server, { httpAllowHalfOpen: true });
  }

  const adapter = new FastifyAdapter({
    genReqId: newRequestId,
    routerOptions: { maxParamLength: LONGEST_SEGMENT },
    serverFactory: serverInFrontOf,
    // Fastify's own 503 has another form. `OpenCalls` rejects calls of a stopping gateway.
    return503OnClosing: false,
    skipMiddie: true,
    multipart: false,
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      filter.answer(error, request, reply),
    clientErrorHandler: (error: Error, socket: Socket) => answerUnparsed(error, socket, unfinished(socket), unrouted),
  });
  const fastify = adapter.getInstance();
  // The body is read as a stream after the guard. Fastify would read it earlier, reject `__proto__` keys, and answer wrong types by itself.
  for (const method of METHODS) {
    // Fastify already treats GET and HEAD as bodiless. CONNECT is no method of a path.
    if (!['GET', 'HEAD', 'CONNECT'].includes(method)) {
      fastify.addHttpMethod(method, { hasBody: false, overrideExisting: true });
    }
  }
  return adapter;
}

const limits = (requestMs: number, longestMs: number): ServerOptions => ({
  // Node accepts only whole milliseconds.
  headersTimeout: Math.ceil(requestMs / 4),
  requestTimeout: Math.ceil(Math.max(requestMs, longestMs)) + SLACK_MS,
  connectionsCheckingInterval: Math.min(Math.ceil(requestMs / 4), LONGEST_CHECK_MS),
  keepAliveTimeout: IDLE_MS,
  keepAlive: true,
  keepAliveInitialDelay: PROBE_AFTER_MS,
  noDelay: true,
  // Node's own 400 has no body and no request id.
  requireHostHeader: false,
});

/**
 * Answers requests that need no route, and gives other requests the form that the routes expect.
 *
 * @returns whether the request has been answered
 */
function answeredWithoutRoute(
  { origins, newRequestId, count }: UnroutedParts,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const allowed = (origins === '*' || origins.size > 0) && allowOrigin(origins, request, response);
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
